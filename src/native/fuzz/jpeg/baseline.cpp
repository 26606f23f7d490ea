// The decoder of our own, without libjpeg behind it: what it gives are libjpeg's pixels, in any region, from
// any restart marker on; a region is that part of the whole, and every set of kernels gives the same,
// shrunken or not.
#include "core/jpeg/baseline/baseline_decoder.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"
#include "fuzz/pixels_of.h"

namespace {

using stoker::fuzz::cut;
using stoker::fuzz::require;
using stoker::fuzz::Rgb;

constexpr uint64_t kMaxPixels = 1 << 16;

struct Outcome {
  bool error = false;
  std::optional<Rgb> pixels;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome decoded(stoker::BaselineDecoder& decoder, std::span<const uint8_t> bytes, int32_t shrink,
                stoker::Rect part) {
  Outcome outcome;
  const size_t stride = static_cast<size_t>(part.width) * stoker::kRgbxBytes;
  std::vector<uint8_t> out(stride * static_cast<size_t>(part.height) +
                           stoker::kPlanePadding * stoker::kRgbxBytes);
  outcome.error = !stoker::fuzz::succeeds([&] {
    require(decoder.open(bytes));
    if (!decoder.decode(part, shrink, out.data(), stride)) return;
    outcome.pixels = cut({out.data(), stride, {part.width, part.height}}, {0, 0, part.width, part.height});
  });
  return outcome;
}

// One decoder for each pair of kernels, kept from input to input.
std::vector<stoker::BaselineDecoder>& decoders() {
  static std::vector<stoker::BaselineDecoder> all = [] {
    std::vector<stoker::BaselineDecoder> made;
    const auto& planes = stoker::plane_kernels();
    const auto& entropy = stoker::entropy_kernels();
    for (size_t i = 0; i < std::max(planes.size(), entropy.size()); ++i) {
      made.emplace_back(*planes[std::min(i, planes.size() - 1)], *entropy[std::min(i, entropy.size() - 1)]);
    }
    return made;
  }();
  return all;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  const int32_t shrink = 1 << (input.byte() & 3);
  stoker::fuzz::Input place = input.choices(8);
  const std::vector<uint8_t> bytes = input.rest();
  stoker::BaselineDecoder& first = decoders().front();
  if (!first.open(bytes)) return 0;
  const stoker::Extent image = first.size();
  if (static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) > kMaxPixels) return 0;
  const stoker::Extent shrunken{(image.width + shrink - 1) / shrink, (image.height + shrink - 1) / shrink};
  const stoker::Rect part = stoker::fuzz::some_part(place, shrunken);
  const Outcome outcome = decoded(first, bytes, shrink, part);
  const Outcome all = decoded(first, bytes, shrink, {0, 0, shrunken.width, shrunken.height});
  if (all.pixels) require(outcome.pixels == cut(*all.pixels, part));
  bool passed = false;
  const bool error = !stoker::fuzz::succeeds([&] { passed = first.open(bytes) && first.check(); });
  require(error == all.error && passed == all.pixels.has_value());
  for (auto& other : decoders()) require(decoded(other, bytes, shrink, part) == outcome);
  // Damage outside of the part may go unseen, so only what libjpeg decodes whole can be compared.
  const auto whole = stoker::fuzz::libjpeg_pixels(bytes, kMaxPixels);
  if (whole) require(!outcome.error);
  if (shrink == 1 && outcome.pixels && whole) require(*outcome.pixels == cut(*whole, part));
  const bool is_whole = part == stoker::Rect{0, 0, image.width, image.height};
  if (is_whole && shrink == 1 && outcome.pixels) require(whole.has_value());
  return 0;
}
