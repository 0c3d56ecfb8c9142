// Classify an image by an exported graph, such as a ResNet of sbpjax.vision.
//
//   classify DIRECTORY IMAGE.ppm [LABELS.txt]
//
// The image is a binary PPM (`convert photo.jpg photo.ppm`). It is scaled so that its shorter side is 8/7 of the graph's
// input, the middle of it is taken, and its colours are normalised as for ImageNet. The five likeliest classes are
// printed, with their probabilities.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <numeric>
#include <string>
#include <vector>

#include "sbpjax/graph.h"

namespace {

struct Image {
  int width = 0, height = 0;
  std::vector<unsigned char> rgb;
};

bool Read(const std::string& path, Image* image) {
  std::ifstream file(path, std::ios::binary);
  std::string kind;
  int most = 0;
  file >> kind >> image->width >> image->height >> most;
  if (!file || kind != "P6" || most != 255 || image->width < 1 || image->height < 1) return false;
  if (image->width > 1 << 15 || image->height > 1 << 15) return false;
  file.get();
  image->rgb.resize(std::size_t{3} * image->width * image->height);
  file.read(reinterpret_cast<char*>(image->rgb.data()), static_cast<std::streamsize>(image->rgb.size()));
  return static_cast<bool>(file);
}

// The middle of an image, side × side, by colour: what the graph takes.
std::vector<float> Prepared(const Image& image, int side) {
  const float mean[] = {0.485f, 0.456f, 0.406f}, deviation[] = {0.229f, 0.224f, 0.225f};
  const float scale = std::min(image.width, image.height) / (side * 8.0f / 7.0f);
  std::vector<float> made(std::size_t{3} * side * side);
  for (int y = 0; y < side; ++y) {
    for (int x = 0; x < side; ++x) {
      const float fx = std::clamp(image.width / 2.0f + (x + 0.5f - side / 2.0f) * scale - 0.5f, 0.0f, image.width - 1.0f);
      const float fy = std::clamp(image.height / 2.0f + (y + 0.5f - side / 2.0f) * scale - 0.5f, 0.0f, image.height - 1.0f);
      const int x0 = static_cast<int>(fx), y0 = static_cast<int>(fy);
      const int x1 = std::min(x0 + 1, image.width - 1), y1 = std::min(y0 + 1, image.height - 1);
      const float ax = fx - x0, ay = fy - y0;
      for (int c = 0; c < 3; ++c) {
        const auto at = [&](int px, int py) { return image.rgb[3 * (std::size_t{1} * py * image.width + px) + c] / 255.0f; };
        const float top = at(x0, y0) * (1 - ax) + at(x1, y0) * ax, below = at(x0, y1) * (1 - ax) + at(x1, y1) * ax;
        made[(std::size_t{1} * c * side + y) * side + x] = (top * (1 - ay) + below * ay - mean[c]) / deviation[c];
      }
    }
  }
  return made;
}

int Fail(const std::string& why) {
  std::cerr << why << "\n";
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return Fail("classify DIRECTORY IMAGE.ppm [LABELS.txt]");
  sbpjax::Graph graph;
  sbpjax::Options options;
  if (const char* engine = std::getenv("SBPJAX_ENGINE")) options.engine = engine;
  sbpjax::Status status = sbpjax::Graph::Load(argv[1], options, &graph);
  if (!status.ok()) return Fail(status.message());
  if (graph.inputs().size() != 1 || graph.inputs()[0].shape.size() != 4 || graph.inputs()[0].shape[1] != 3) {
    return Fail("the graph takes something else than images (N, 3, H, W)");
  }
  Image image;
  if (!Read(argv[2], &image)) return Fail(std::string(argv[2]) + " is no binary PPM of 8 bits");
  const sbpjax::Port& port = graph.inputs()[0];
  const std::size_t side = port.shape[2] > 0 ? static_cast<std::size_t>(port.shape[2]) : 224;
  std::vector<float> pixels = Prepared(image, static_cast<int>(side));
  std::vector<sbpjax::Tensor> outputs;
  status = graph.Run({{port.name, sbpjax::View::Of(pixels.data(), {1, 3, side, side})}}, &outputs);
  if (!status.ok()) return Fail(status.message());

  const std::size_t classes = outputs[0].shape.back();
  const float* logits = outputs[0].data<float>();
  const float largest = *std::max_element(logits, logits + classes);
  double sum = 0;
  for (std::size_t i = 0; i < classes; ++i) sum += std::exp(logits[i] - largest);
  std::vector<std::size_t> order(classes);
  std::iota(order.begin(), order.end(), std::size_t{0});
  const std::size_t shown = std::min<std::size_t>(5, classes);
  std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(shown), order.end(),
                    [&](std::size_t a, std::size_t b) { return logits[a] > logits[b]; });
  std::vector<std::string> labels;
  if (argc > 3) {
    std::ifstream file(argv[3]);
    for (std::string line; std::getline(file, line);) labels.push_back(line);
  }
  for (std::size_t i = 0; i < shown; ++i) {
    const std::size_t k = order[i];
    std::printf("%zu %.6f %s\n", k, std::exp(logits[k] - largest) / sum, k < labels.size() ? labels[k].c_str() : "");
  }
  return 0;
}
