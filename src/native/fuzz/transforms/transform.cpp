// Transforms of JPEG bytes and raw pixels, in every mode of pixels and both of decoding, and images made anew
// from a part of another: an error, or exactly the pixels asked for, none written beside them, the same ones
// again from a decoder that has seen nothing before, and from one that follows another.
#include <map>

#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "core/transforms/reencode.h"
#include "core/transforms/transform_decoder.h"
#include "fuzz/geometry.h"
#include "fuzz/invariant.h"

namespace {

using stoker::Extent;
using stoker::fuzz::Input;
using stoker::fuzz::require;

constexpr uint64_t kMaxPixels = 1 << 14;
constexpr uint8_t kUntouched = 0xA5;
constexpr size_t kGap = 5;  // bytes behind each row of a result that must stay as they are

constexpr int64_t kMostShown = 1 << 14;  // pixels of a result

struct Shown {
  bool error = false;
  std::vector<std::vector<uint8_t>> transforms;
  friend bool operator==(const Shown&, const Shown&) = default;
};

Shown show(stoker::TransformDecoder& decoder, stoker::PixelMode mode, const stoker::StoredImage& image,
           const std::vector<stoker::TransformSpec>& transforms, uint64_t seed,
           const stoker::TransformDecoder* first = nullptr) {
  Shown shown;
  std::vector<stoker::RgbSlot> slots;
  for (const auto& transform : transforms) {
    const Extent out = transform.out();
    const size_t stride = static_cast<size_t>(out.width) * stoker::pixel_bytes(mode) + kGap;
    shown.transforms.emplace_back(stride * static_cast<size_t>(out.height), kUntouched);
    slots.push_back({shown.transforms.back().data(), stride});
  }
  const stoker::SampleRandom random(seed, 0, 0);
  shown.error = !stoker::fuzz::succeeds([&] {
    if (first == nullptr) return decoder.decode(image, transforms, random, kMaxPixels, slots);
    decoder.decode_as(*first, image, transforms, random, kMaxPixels, slots);
  });
  for (size_t i = 0; i < transforms.size(); ++i) {
    for (int32_t y = 0; y < transforms[i].out().height; ++y) {
      const uint8_t* gap = slots[i].row(y) + slots[i].stride - kGap;
      for (size_t k = 0; k < kGap; ++k) require(gap[k] == kUntouched);
    }
  }
  if (shown.error) shown.transforms.clear();  // what is there then says nothing
  return shown;
}

void remake(Input& input, std::span<const uint8_t> bytes) {
  static stoker::Reencoder reencoder;
  stoker::ReencodeSpec spec;
  spec.part = {stoker::fuzz::some_coordinate(input, 8), stoker::fuzz::some_coordinate(input, 8),
               stoker::fuzz::some_side(input, 32), stoker::fuzz::some_side(input, 32)};
  spec.size = {stoker::fuzz::some_side(input, 40), stoker::fuzz::some_side(input, 40)};
  spec.filter = static_cast<stoker::Filter>(input.byte() % 5);
  spec.decode = static_cast<stoker::DecodeMode>(input.byte() % 2);
  spec.max_pixels = kMaxPixels;
  stoker::fuzz::succeeds([&] {
    const auto header = stoker::check_jpeg(reencoder.run(bytes, spec));
    require(stoker::Extent{header.width, header.height} == spec.size);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static std::map<int, stoker::TransformDecoder> decoders;
  Input input(data, size);
  const uint8_t choice = input.byte();
  const uint64_t seed = input.word();
  std::vector<stoker::TransformSpec> transforms;
  const bool raw = (choice & 2) != 0;
  for (int i = 0; i < (!raw && (choice & 4) != 0 ? 2 : 1); ++i) {
    const auto transform = stoker::fuzz::some_transform(input);
    if (!transform) return 0;
    transforms.push_back(*transform);
  }
  Input choices = input.choices(16);
  std::vector<uint8_t> bytes = input.rest();
  for (const stoker::TransformSpec& transform : transforms) {
    if (int64_t{transform.out().width} * transform.out().height > kMostShown) return 0;
  }
  stoker::StoredImage image;
  if (raw) {
    image.encoding = stoker::ImageEncoding::kRaw;
    image.size = {1 + choices.byte() % 32, 1 + choices.byte() % 32};
    image.order = (choice & 8) != 0 ? stoker::TensorOrder::kChw : stoker::TensorOrder::kHwc;
    bytes.resize(static_cast<size_t>(image.size.width) * static_cast<size_t>(image.size.height) *
                 stoker::kRgbBytes);
  } else {
    remake(choices, bytes);
  }
  image.bytes = bytes;
  image.orientation = stoker::Orientation(choices.byte() % 9);
  if ((choice & 16) != 0) image.object = stoker::ObjectBox{0.25F, -1.0F, 0.5F, 1e30F};
  const auto decode = static_cast<stoker::DecodeMode>(choice & 1);
  const auto mode = static_cast<stoker::PixelMode>(choice >> 5 & 3);
  auto& kept = decoders.try_emplace(choice & 0x61, decode, nullptr, mode).first->second;
  const Shown shown = show(kept, mode, image, transforms, seed);
  stoker::TransformDecoder fresh(decode, nullptr, mode);
  require(show(fresh, mode, image, transforms, seed) == shown);
  stoker::TransformDecoder follower(decode, nullptr, mode);
  if (!shown.error) require(show(follower, mode, image, transforms, seed, &kept) == shown);
  return 0;
}
