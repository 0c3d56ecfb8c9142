// JSON, as far as a manifest and the header of a safetensors file need it.
//
//   Json found = Json::Parse(R"({"shape": [2, 3]})");
//   found["shape"][1].number;                                     // 3
//
// What is wrong is thrown, a missing member too: whoever reads a file says which one it was.

#ifndef SBPJAX_SRC_JSON_H_
#define SBPJAX_SRC_JSON_H_

#include <string>
#include <utility>
#include <vector>

namespace sbpjax {

struct Json {
  enum class Kind { kNull, kBool, kNumber, kString, kArray, kObject };
  Kind kind = Kind::kNull;
  double number = 0;  // of a bool 0 or 1
  std::string text;
  std::vector<Json> items;
  std::vector<std::pair<std::string, Json>> members;

  static Json Parse(const std::string& text);

  bool is_null() const { return kind == Kind::kNull; }
  const Json* find(const std::string& name) const;           // a member, or nullptr
  const Json& operator[](const std::string& name) const;     // a member
  const Json& operator[](std::size_t i) const;               // an item
};

}  // namespace sbpjax

#endif  // SBPJAX_SRC_JSON_H_
