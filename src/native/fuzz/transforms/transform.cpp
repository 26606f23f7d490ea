// Transforms of JPEG bytes and raw pixels, in both modes of decoding, and images made anew from a part of
// another: an error, or exactly the pixels asked for, none written beside them, the same ones again from a
// decoder that has seen nothing before.
#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "core/transforms/reencode.h"
#include "core/transforms/transform_decoder.h"
#include "fuzz/input.h"
#include "fuzz/invariant.h"

namespace {

using stoker::fuzz::Input;
using stoker::fuzz::require;

constexpr uint64_t kMaxPixels = 1 << 14;
constexpr uint8_t kUntouched = 0xA5;
constexpr size_t kGap = 5;  // bytes behind each row of a result that must stay as they are

stoker::TransformSpec some_transform(Input& input) {
  stoker::TransformSpec transform;
  transform.kind = static_cast<stoker::TransformKind>(input.byte() % 6);
  transform.out = {1 + input.byte() % 40, 1 + input.byte() % 40};
  transform.filter = static_cast<stoker::Filter>(input.byte() % 5);
  transform.hflip = (input.byte() & 1) != 0 ? 0.5 : 0.0;
  transform.ratio_min = 0.75, transform.ratio_max = 4.0 / 3;
  transform.log_ratio_min = -0.2877, transform.log_ratio_max = 0.2877;
  transform.resize = std::max(transform.out.width, transform.out.height) + input.byte() % 8;
  return transform;
}

struct Shown {
  bool error = false;
  std::vector<std::vector<uint8_t>> transforms;
  friend bool operator==(const Shown&, const Shown&) = default;
};

Shown show(stoker::TransformDecoder& decoder, const stoker::StoredImage& image,
           const std::vector<stoker::TransformSpec>& transforms, uint64_t seed) {
  Shown shown;
  std::vector<stoker::RgbSlot> slots;
  for (const auto& transform : transforms) {
    const size_t stride = static_cast<size_t>(transform.out.width) * stoker::kRgbBytes + kGap;
    shown.transforms.emplace_back(stride * static_cast<size_t>(transform.out.height), kUntouched);
    slots.push_back({shown.transforms.back().data(), stride});
  }
  shown.error = !stoker::fuzz::succeeds(
      [&] { decoder.decode(image, transforms, stoker::SampleRandom(seed, 0, 0), kMaxPixels, slots); });
  for (size_t i = 0; i < transforms.size(); ++i) {
    for (int32_t y = 0; y < transforms[i].out.height; ++y) {
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
  spec.part = {input.byte() % 8, input.byte() % 8, 1 + input.byte() % 32, 1 + input.byte() % 32};
  spec.size = {1 + input.byte() % 40, 1 + input.byte() % 40};
  spec.filter = static_cast<stoker::Filter>(input.byte() % 5);
  spec.decode = static_cast<stoker::DecodeMode>(input.byte() % 2);
  spec.max_pixels = kMaxPixels;
  stoker::fuzz::succeeds([&] {
    const auto made = stoker::check_jpeg(reencoder.run(bytes, spec));
    require(stoker::Extent{made.width, made.height} == spec.size);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static stoker::TransformDecoder decoders[] = {stoker::TransformDecoder(stoker::DecodeMode::kExact),
                                                stoker::TransformDecoder(stoker::DecodeMode::kFast)};
  Input input(data, size);
  const uint8_t choice = input.byte();
  const uint64_t seed = input.word();
  Input choices = input.choices(24);
  std::vector<uint8_t> bytes = input.rest();
  std::vector<stoker::TransformSpec> transforms{some_transform(choices)};
  const bool raw = (choice & 2) != 0;
  if (!raw && (choice & 4) != 0) transforms.push_back(some_transform(choices));
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
  if ((choice & 16) != 0) image.object = stoker::ObjectBox{0.25F, -1.0F, 0.5F, 1e30F};
  const Shown shown = show(decoders[choice & 1], image, transforms, seed);
  stoker::TransformDecoder fresh(static_cast<stoker::DecodeMode>(choice & 1));
  require(show(fresh, image, transforms, seed) == shown);
  return 0;
}
