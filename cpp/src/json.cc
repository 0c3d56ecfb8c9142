#include "json.h"

#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace sbpjax {
namespace {

class Reader {
 public:
  explicit Reader(const std::string& text) : at_(text.c_str()), end_(at_ + text.size()) {}

  Json Whole() {
    Json found = Value(0);
    Space();
    if (at_ != end_ && *at_ != '\0') Fail("something behind the end");
    return found;
  }

 private:
  static constexpr int kDepth = 100;  // a file must not overflow the stack

  [[noreturn]] void Fail(const std::string& why) const { throw std::runtime_error("no JSON: " + why); }

  void Space() {
    while (at_ != end_ && std::strchr(" \t\r\n", *at_) != nullptr && *at_ != '\0') ++at_;
  }

  bool Takes(char c) {
    Space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }

  void Expect(char c) {
    if (!Takes(c)) Fail(std::string("a ") + c + " is missing");
  }

  bool Word(const char* word) {
    const std::size_t length = std::strlen(word);
    if (static_cast<std::size_t>(end_ - at_) < length || std::strncmp(at_, word, length) != 0) return false;
    at_ += length;
    return true;
  }

  Json Value(int depth) {
    if (depth > kDepth) Fail("too deep");
    Space();
    if (at_ == end_) Fail("it ends early");
    Json found;
    if (*at_ == '{') {
      found.kind = Json::Kind::kObject;
      ++at_;
      if (Takes('}')) return found;
      do {
        std::string name = Text();
        Expect(':');
        found.members.emplace_back(std::move(name), Value(depth + 1));
      } while (Takes(','));
      Expect('}');
    } else if (*at_ == '[') {
      found.kind = Json::Kind::kArray;
      ++at_;
      if (Takes(']')) return found;
      do found.items.push_back(Value(depth + 1));
      while (Takes(','));
      Expect(']');
    } else if (*at_ == '"') {
      found.kind = Json::Kind::kString;
      found.text = Text();
    } else if (Word("null")) {
      return found;
    } else if (Word("true") || Word("NaN") || Word("Infinity") || Word("-Infinity")) {
      found.kind = Json::Kind::kBool;  // the last three are Python's; nothing here reads their value
      found.number = 1;
    } else if (Word("false")) {
      found.kind = Json::Kind::kBool;
    } else {
      found.kind = Json::Kind::kNumber;
      char* behind = nullptr;
      found.number = std::strtod(at_, &behind);
      if (behind == at_ || behind > end_) Fail("a value is missing");
      at_ = behind;
    }
    return found;
  }

  std::string Text() {
    Expect('"');
    std::string found;
    for (; at_ != end_ && *at_ != '"'; ++at_) {
      if (*at_ != '\\') {
        found.push_back(*at_);
        continue;
      }
      if (++at_ == end_) break;
      const char* known = std::strchr("\"\\/bfnrt", *at_);
      if (*at_ == 'u') {
        Code(&found);
      } else if (known != nullptr && *at_ != '\0') {
        found.push_back("\"\\/\b\f\n\r\t"[known - "\"\\/bfnrt"]);
      } else {
        Fail("an unknown escape");
      }
    }
    Expect('"');
    return found;
  }

  unsigned Unit() {  // at the u of \uXXXX; ends at its last digit
    if (end_ - at_ < 5) Fail("a short escape");
    const std::string digits(at_ + 1, 4);
    char* behind = nullptr;
    const unsigned long found = std::strtoul(digits.c_str(), &behind, 16);
    if (*behind != '\0') Fail("a wrong escape");
    at_ += 4;
    return static_cast<unsigned>(found);
  }

  void Code(std::string* out) {  // as UTF-8
    unsigned code = Unit();
    if (code >= 0xD800 && code < 0xDC00 && end_ - at_ > 2 && at_[1] == '\\' && at_[2] == 'u') {
      at_ += 2;
      code = 0x10000 + ((code - 0xD800) << 10) + (Unit() - 0xDC00);
    }
    if (code < 0x80) {
      out->push_back(static_cast<char>(code));
      return;
    }
    const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
    out->push_back(static_cast<char>((more == 1 ? 0xC0 : more == 2 ? 0xE0 : 0xF0) | (code >> (6 * more))));
    for (int i = more - 1; i >= 0; --i) out->push_back(static_cast<char>(0x80 | ((code >> (6 * i)) & 0x3F)));
  }

  const char* at_;
  const char* end_;
};

}  // namespace

Json Json::Parse(const std::string& text) { return Reader(text).Whole(); }

const Json* Json::find(const std::string& name) const {
  for (const auto& [key, value] : members) {
    if (key == name) return &value;
  }
  return nullptr;
}

const Json& Json::operator[](const std::string& name) const {
  const Json* found = find(name);
  if (found == nullptr) throw std::runtime_error("no \"" + name + "\" in it");
  return *found;
}

const Json& Json::operator[](std::size_t i) const {
  if (i >= items.size()) throw std::runtime_error("a list in it is too short");
  return items[i];
}

}  // namespace sbpjax
