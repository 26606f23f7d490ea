// Transforms of raw pixels of any claimed size, with settings and objects that nobody has checked: an error,
// or the pixels that come of cutting the image out pixel by pixel; and boxes that lie inside of them.
#include <optional>

#include "core/resize/resample.h"
#include "core/transforms/transform_decoder.h"
#include "fuzz/geometry.h"
#include "fuzz/invariant.h"
#include "fuzz/resize_rgb.h"

namespace {

using stoker::Extent;
using stoker::Rect;
using stoker::StoredImage;
using stoker::TransformPlan;
using stoker::fuzz::Input;
using stoker::fuzz::require;

constexpr uint64_t kMaxPixels = 1 << 14;
constexpr int32_t kMostShown = 1 << 12;  // pixels of a result that is made; of larger ones only the plan is
constexpr uint8_t kUntouched = 0xA5;
constexpr size_t kGap = 5;

bool lies_in(Rect part, Extent whole) {
  return part.x >= 0 && part.y >= 0 && part.width > 0 && part.height > 0 &&
         part.width <= whole.width - part.x && part.height <= whole.height - part.y;
}

// The slow twin: one pixel at a time, by the definition of the two orders.
std::vector<uint8_t> cut(const StoredImage& image, Rect part) {
  std::vector<uint8_t> pixels;
  const int64_t width = image.size.width, height = image.size.height;
  for (int64_t y = part.y; y < int64_t{part.y} + part.height; ++y) {
    for (int64_t x = part.x; x < int64_t{part.x} + part.width; ++x) {
      for (int64_t c = 0; c < 3; ++c) {
        const bool planes = image.order == stoker::TensorOrder::kChw;
        const int64_t at = planes ? (c * height + y) * width + x : (y * width + x) * 3 + c;
        require(at >= 0 && at < static_cast<int64_t>(image.bytes.size()));
        pixels.push_back(image.bytes[static_cast<size_t>(at)]);
      }
    }
  }
  return pixels;
}

std::vector<uint8_t> expected(const StoredImage& image, const stoker::TransformSpec& transform,
                              const TransformPlan& plan) {
  const Extent size{plan.window.width, plan.window.height};
  const size_t stride = static_cast<size_t>(size.width) * stoker::kRgbBytes;
  std::vector<uint8_t> pixels(stride * static_cast<size_t>(size.height));
  const auto crop = cut(image, plan.crop);
  stoker::Resampler resampler;
  resampler.plan(transform.filter(), {plan.crop.width, plan.crop.height}, plan.resized, plan.window);
  stoker::fuzz::resize_rgb(resampler, crop.data(), static_cast<size_t>(plan.crop.width) * stoker::kRgbBytes,
                           false, {pixels.data(), stride});
  for (int32_t y = 0; plan.flip && y < size.height; ++y) {
    for (int32_t left = 0, right = size.width - 1; left < right; ++left, --right) {
      uint8_t* row = pixels.data() + static_cast<size_t>(y) * stride;
      std::swap_ranges(row + left * 3, row + left * 3 + 3, row + right * 3);
    }
  }
  return pixels;
}

void check_boxes(Input& input, const TransformPlan& plan, Extent image) {
  std::vector<stoker::LabelledBox> boxes(input.byte() % 4);
  for (auto& box : boxes) box.box = stoker::fuzz::some_box(input);
  std::vector<stoker::TransformedBox> shown;
  stoker::transform_boxes(plan, image, boxes, 0.0, shown);
  for (const stoker::TransformedBox& box : shown) {
    require(0 <= box.xmin && box.xmin <= box.xmax && box.xmax <= static_cast<float>(plan.window.width));
    require(0 <= box.ymin && box.ymin <= box.ymax && box.ymax <= static_cast<float>(plan.window.height));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t length) {
  Input input(data, length);
  const uint8_t choice = input.byte();
  const stoker::SampleRandom random(input.word(), 0, 0);
  const auto chosen = stoker::fuzz::some_transform(input);
  if (!chosen) return 0;
  const stoker::TransformSpec& transform = *chosen;
  Input choices = input.choices(24);
  std::vector<uint8_t> bytes = input.rest();
  StoredImage image;
  image.encoding = stoker::ImageEncoding::kRaw;
  image.size = {stoker::fuzz::some_side(choices, 24), stoker::fuzz::some_side(choices, 24)};
  image.order = (choice & 1) != 0 ? stoker::TensorOrder::kChw : stoker::TensorOrder::kHwc;
  const int64_t pixels = int64_t{image.size.width} * image.size.height;
  const bool claimed = (choice & 2) == 0;  // otherwise there are as many bytes as the size says
  if (!claimed && pixels > 0 && pixels <= 4096) bytes.resize(static_cast<size_t>(pixels) * stoker::kRgbBytes);
  image.bytes = bytes;
  if ((choice & 4) != 0) image.object = stoker::fuzz::some_box(choices);

  std::optional<TransformPlan> plan;
  stoker::fuzz::succeeds([&] { plan = transform.plan(image.size, random, image.object); });
  if (plan) {
    require(lies_in(plan->crop, image.size) && lies_in(plan->window, plan->resized));
    require(Extent{plan->window.width, plan->window.height} == transform.out());
    check_boxes(choices, *plan, image.size);
  }
  const Extent size = transform.out();
  if (int64_t{size.width} * size.height > kMostShown) return 0;
  const size_t stride = static_cast<size_t>(size.width) * stoker::kRgbBytes + kGap;
  std::vector<uint8_t> out(stride * static_cast<size_t>(size.height), kUntouched);
  const stoker::RgbSlot slot{out.data(), stride};
  static stoker::TransformDecoder decoders[] = {stoker::TransformDecoder(stoker::DecodeMode::kExact),
                                                stoker::TransformDecoder(stoker::DecodeMode::kFast)};
  const bool fast = (choice & 16) != 0;
  const bool accepted = stoker::fuzz::succeeds(
      [&] { decoders[fast ? 1 : 0].decode(image, {&transform, 1}, random, kMaxPixels, {&slot, 1}); });
  const bool sound = pixels > 0 && static_cast<uint64_t>(pixels) <= kMaxPixels && image.size.width > 0 &&
                     static_cast<int64_t>(bytes.size()) == pixels * 3;
  require(accepted == (sound && plan));
  if (!accepted) return 0;
  const auto wanted =
      fast || transform.changes_pixels() ? std::vector<uint8_t>() : expected(image, transform, *plan);
  for (int32_t y = 0; y < size.height; ++y) {
    const uint8_t* row = slot.row(y);
    require(std::all_of(row + stride - kGap, row + stride, [](uint8_t byte) { return byte == kUntouched; }));
    if (!wanted.empty()) {
      require(std::equal(row, row + stride - kGap, wanted.data() + static_cast<size_t>(y) * (stride - kGap)));
    }
  }
  return 0;
}
