// Geometry that nobody has checked before: the core refuses it by itself.
#include "core/transforms/transform.h"

#include <doctest/doctest.h>

#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "bench/decode_loop.h"
#include "core/base/errors.h"
#include "core/engine/engine.h"
#include "core/transforms/reencode.h"
#include "core/transforms/transform_decoder.h"
#include "tests/counted_source.h"
#include "tests/photo.h"
#include "tests/transforms.h"

namespace stoker {
namespace {

using tests::Numbers;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();
constexpr int32_t kMost = std::numeric_limits<int32_t>::max();

template <typename Act>
std::optional<ErrorCode> code_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TransformSpec random_crop(SettingValues changed = {}) {
  return tests::transform("RandomResizedCrop", {8, 8}, std::move(changed));
}

TransformSpec center(int32_t side, int32_t resize) {
  return tests::transform("CenterCrop", {side, side}, {{"resize", Numbers{static_cast<double>(resize)}}});
}

TransformSpec resize_to(Extent size) {
  return tests::transform("Resize", size);
}

// Raw pixels of a colour each, so that one from elsewhere is seen.
struct RawImage {
  std::vector<uint8_t> pixels;
  StoredImage image;

  explicit RawImage(Extent size) : pixels(static_cast<size_t>(size.width * size.height) * kRgbBytes) {
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7);
    image.bytes = pixels;
    image.encoding = ImageEncoding::kRaw;
    image.size = size;
  }
};

std::optional<ErrorCode> show(const StoredImage& image, const TransformSpec& transform) {
  std::vector<uint8_t> out(static_cast<size_t>(transform.out().width) *
                           static_cast<size_t>(transform.out().height) * kRgbBytes);
  const RgbSlot slot{out.data(), static_cast<size_t>(transform.out().width) * kRgbBytes};
  TransformDecoder decoder;
  return code_of([&] { decoder.decode(image, {&transform, 1}, SampleRandom(0, 0, 0), 1 << 20, {&slot, 1}); });
}

TEST_CASE("a centre larger than what it is cut out of is refused, and never read beside the pixels") {
  const RawImage raw({16, 16});
  CHECK(show(raw.image, center(16, 16)) == std::nullopt);
  for (const int32_t side : {17, 24, 32, 1024})
    CHECK(code_of([&] { center(side, 16); }) == ErrorCode::kBadArgument);
  for (const int32_t resize : {0, -1, 7, kMostSide + 1, kMost, -kMost - 1}) {
    CHECK(code_of([&] { center(8, resize); }) == ErrorCode::kBadArgument);
  }
}

TEST_CASE("settings that are out of range or not numbers are refused") {
  const auto refused = [](const std::string& name, SettingValue value) {
    return code_of([&] { random_crop({{name, std::move(value)}}); }) == ErrorCode::kBadArgument;
  };
  for (const double odd : {kNan, kInfinite, -kInfinite, -1.0, 1e300, -1e300}) {
    CHECK(refused("scale", Numbers{odd, 1.0}));
    CHECK(refused("scale", Numbers{0.08, odd}));
    CHECK(refused("ratio", Numbers{odd, 1.25}));
    CHECK(refused("ratio", Numbers{0.75, odd}));
    CHECK(refused("hflip", Numbers{odd}));
    CHECK(refused("size", Numbers{odd, 8}));
    CHECK(code_of([&] { tests::transform("Resize", {8, 8}, {}, {tests::jitter({odd, 1.0})}); }) ==
          ErrorCode::kBadArgument);
    CHECK(code_of([&] {
            tests::transform("Resize", {8, 8}, {}, {tests::jitter({0}, {0}, {0}, {0.0, odd})});
          }) == ErrorCode::kBadArgument);
  }
  for (const double side : {0.0, 0.5, 8.5, kMostSide + 1.0}) CHECK(refused("size", Numbers{side, 8}));
  CHECK(refused("size", Numbers{}));
  CHECK(refused("size", Numbers{8, 8, 8}));
  CHECK(refused("scale", "half"));
  CHECK(refused("filter", "sinc"));
  CHECK(refused("filter", Numbers{1}));
  CHECK(refused("resize", Numbers{8}));  // which this operation does not have
  CHECK(code_of([] { random_crop(); }) == std::nullopt);
}

TEST_CASE("an operation that there is not is refused, and one that lacks a setting") {
  CHECK(code_of([] { TransformSpec({"Crop", {{"size", Numbers{8}}}}); }) == ErrorCode::kBadArgument);
  CHECK(code_of([] { TransformSpec({"CenterCrop", {{"size", Numbers{8}}}}); }) == ErrorCode::kBadArgument);
  CHECK(code_of([] { TransformSpec({"Resize", {}}); }) == ErrorCode::kBadArgument);
  CHECK(code_of([] { TransformSpec({"Resize", {{"size", Numbers{8}}}}, {{"Resize", {}}}); }) ==
        ErrorCode::kBadArgument);
  CHECK(TransformSpec({"Resize", {{"size", Numbers{8}}}}).out() == Extent{8, 8});
}

TEST_CASE("an image without pixels, or too long to be resized, has no plan") {
  for (const Extent image : {Extent{0, 5}, Extent{5, 0}, Extent{-3, 5}, Extent{-1, -1}}) {
    CHECK(code_of([&] { random_crop().plan(image, SampleRandom(0, 0, 0)); }) == ErrorCode::kBadArgument);
  }
  CHECK(code_of([] { center(8, kMostSide).plan({1, 65535}, SampleRandom(0, 0, 0)); }) ==
        ErrorCode::kBadImage);
  const TransformPlan plan = center(8, 256).plan({1, 65535}, SampleRandom(0, 0, 0));
  CHECK(plan.resized == Extent{256, 256 * 65535});
  CHECK(plan.window == Rect{124, 256 * 65535 / 2 - 4, 8, 8});
}

TEST_CASE("raw pixels that are not as many as their size says are refused") {
  const TransformSpec resize = resize_to({4, 4});
  for (const Extent claimed : {Extent{17, 16}, Extent{16, 17}, Extent{32, 8 + 1}, Extent{0, 16},
                               Extent{-16, -16}, Extent{kMost, kMost}, Extent{-1, 1}, Extent{15, 16}}) {
    RawImage raw({16, 16});
    raw.image.size = claimed;
    CHECK(show(raw.image, resize) == ErrorCode::kBadImage);
  }
  RawImage raw({16, 16});
  raw.image.size = {32, 8};  // another shape of as many
  CHECK(show(raw.image, resize) == std::nullopt);
  raw.image.bytes = raw.image.bytes.first(raw.pixels.size() - 1);
  CHECK(show(raw.image, resize) == ErrorCode::kBadImage);
}

TEST_CASE("raw pixels are shown as grey and with alpha, and not in 16 bits") {
  const RawImage raw({16, 16});
  const auto shown = [&](PixelMode mode, const TransformSpec& transform, size_t pixel) {
    std::vector<uint8_t> out(static_cast<size_t>(transform.out().width * transform.out().height) * pixel);
    const RgbSlot slot{out.data(), static_cast<size_t>(transform.out().width) * pixel};
    TransformDecoder(DecodeMode::kExact, nullptr, mode)
        .decode(raw.image, {&transform, 1}, SampleRandom(0, 0, 0), 1 << 20, {&slot, 1});
    return out;
  };
  for (const double hflip : {0.0, 1.0}) {
    const TransformSpec corner = tests::transform("TopLeft", {9, 5}, {{"hflip", Numbers{hflip}}});
    const auto rgb = shown(PixelMode::kRgb, corner, 3), grey = shown(PixelMode::kL, corner, 1),
               alpha = shown(PixelMode::kRgba, corner, 4);
    for (size_t i = 0; i < grey.size(); ++i) {
      REQUIRE(grey[i] ==
              (rgb[3 * i] * 19595 + rgb[3 * i + 1] * 38470 + rgb[3 * i + 2] * 7471 + 32768) / 65536);
      REQUIRE(alpha[4 * i + 3] == 255);
      for (size_t c = 0; c < 3; ++c) REQUIRE(alpha[4 * i + c] == rgb[3 * i + c]);
    }
  }
  const TransformSpec resize = resize_to({4, 4});
  CHECK(code_of([&] { shown(PixelMode::kI16, resize, 2); }) == ErrorCode::kBadImage);
  // Opaque colours are resized as RGB.
  const auto rgb = shown(PixelMode::kRgb, resize, 3), alpha = shown(PixelMode::kRgba, resize, 4);
  for (size_t i = 0; i < 48; ++i) REQUIRE(alpha[i / 3 * 4 + i % 3] == rgb[i]);
}

TEST_CASE("raw pixels of one mode are not shown in another") {
  const std::vector<uint8_t> grey(16);
  const StoredImage image{
      .bytes = grey, .encoding = ImageEncoding::kRaw, .size = {4, 4}, .mode = PixelMode::kL};
  const TransformSpec transform = resize_to({4, 4});
  for (const PixelMode mode : {PixelMode::kRgb, PixelMode::kRgba, PixelMode::kI16}) {
    std::vector<uint8_t> out(4 * 4 * 4);
    const RgbSlot slot{out.data(), 4 * pixel_bytes(mode)};
    TransformDecoder decoder(DecodeMode::kExact, nullptr, mode);
    CHECK(code_of([&] { decoder.decode(image, {&transform, 1}, SampleRandom(0, 0, 0), 1000, {&slot, 1}); }) ==
          ErrorCode::kBadArgument);
  }
}

TEST_CASE("an image without alpha is shown in RGBA as in RGB, and opaque") {
  const auto jpeg = tests::jpeg({60, 44}, {}, 3, 0);
  const StoredImage image{.bytes = jpeg};
  for (const DecodeMode decode : {DecodeMode::kExact, DecodeMode::kFast}) {
    for (const char* filter : {"nearest", "bicubic"}) {
      const TransformSpec transform = tests::transform("Resize", {13, 9}, {{"filter", filter}});
      std::vector<uint8_t> rgb(13 * 9 * 3), rgba(13 * 9 * 4);
      const RgbSlot narrow{rgb.data(), 39}, wide{rgba.data(), 52};
      TransformDecoder(decode).decode(image, {&transform, 1}, SampleRandom(0, 0, 0), 10000, {&narrow, 1});
      TransformDecoder(decode, nullptr, PixelMode::kRgba)
          .decode(image, {&transform, 1}, SampleRandom(0, 0, 0), 10000, {&wide, 1});
      for (size_t i = 0; i < rgba.size(); ++i) {
        REQUIRE(rgba[i] == (i % 4 == 3 ? 255 : rgb[i / 4 * 3 + i % 4]));
      }
    }
  }
}

TEST_CASE("colours are changed in RGB and L alone") {
  const RawImage raw({16, 16});
  const TransformSpec transform = tests::transform("Resize", {4, 4}, {}, {tests::jitter({0.5, 0.5})});
  for (const PixelMode mode : {PixelMode::kRgb, PixelMode::kL, PixelMode::kRgba, PixelMode::kI16}) {
    const bool takes = mode == PixelMode::kRgb || mode == PixelMode::kL;
    std::vector<uint8_t> out(4 * 4 * 4);
    const RgbSlot slot{out.data(), 4 * pixel_bytes(mode)};
    TransformDecoder decoder(DecodeMode::kExact, nullptr, mode);
    const auto code =
        code_of([&] { decoder.decode(raw.image, {&transform, 1}, SampleRandom(0, 0, 0), 1000, {&slot, 1}); });
    CHECK(code == (takes ? std::nullopt : std::optional(ErrorCode::kBadArgument)));
    EngineSpec spec;
    spec.transforms = {transform};
    spec.mode = mode;
    if (mode == PixelMode::kI16) spec.format.type = PixelType::kUint16;
    const auto source = std::make_shared<tests::CountedSource>(std::vector<uint64_t>{10});
    CHECK(code_of([&] { BatchEngine(source, spec); }).has_value() == !takes);
  }
}

TEST_CASE("colours of grey are changed as those of grey in three channels") {
  std::vector<uint8_t> grey(256), rgb;
  for (size_t i = 0; i < 256; ++i) grey[i] = static_cast<uint8_t>(i);
  for (const uint8_t value : grey) rgb.insert(rgb.end(), 3, value);
  const StoredImage flat{
      .bytes = grey, .encoding = ImageEncoding::kRaw, .size = {16, 16}, .mode = PixelMode::kL};
  const StoredImage full{.bytes = rgb, .encoding = ImageEncoding::kRaw, .size = {16, 16}};
  const TransformSpec transform =
      tests::transform("RawTensor", {16, 16}, {}, {tests::jitter({0.5}, {0.2, 1.9}, {1}, {0.5})});
  TransformDecoder of_grey(DecodeMode::kExact, nullptr, PixelMode::kL), of_rgb;
  std::vector<uint8_t> small(256), large(768);
  const RgbSlot narrow{small.data(), 16}, wide{large.data(), 48};
  for (uint64_t sample = 0; sample < 200; ++sample) {
    of_grey.decode(flat, {&transform, 1}, SampleRandom(1, 0, sample), 1000, {&narrow, 1});
    of_rgb.decode(full, {&transform, 1}, SampleRandom(1, 0, sample), 1000, {&wide, 1});
    for (size_t i = 0; i < 768; ++i) REQUIRE(large[i] == small[i / 3]);
  }
}

TEST_CASE("a decoder wants a slot for each of its transforms") {
  const RawImage raw({16, 16});
  TransformDecoder decoder;
  CHECK(code_of([&] { decoder.decode(raw.image, {}, SampleRandom(0, 0, 0), 1000, {}); }) ==
        ErrorCode::kBadArgument);
  const TransformSpec two[] = {resize_to({4, 4}), resize_to({4, 4})};
  std::vector<uint8_t> out(48);
  const RgbSlot slot{out.data(), 12};
  CHECK(code_of([&] { decoder.decode(raw.image, two, SampleRandom(0, 0, 0), 1000, {&slot, 1}); }) ==
        ErrorCode::kBadArgument);
}

TEST_CASE("an engine refuses what it cannot hold before anything is taken for it") {
  const auto source = std::make_shared<tests::CountedSource>(std::vector<uint64_t>{10});
  const auto refusal = [&](const auto& change) {
    EngineSpec spec;
    spec.transforms = {resize_to({16, 16})};
    change(spec);
    return code_of([&] { BatchEngine(source, spec); });
  };
  CHECK(refusal([](EngineSpec&) {}) == std::nullopt);
  CHECK(refusal([](EngineSpec& s) { s.transforms = {}; }) == ErrorCode::kBadArgument);
  CHECK(refusal([](EngineSpec& s) { s.transforms.resize(kMostTransforms + 1, s.transforms[0]); }) ==
        ErrorCode::kBadArgument);
  for (const size_t odd : {size_t{0}, kMostThreads + 1, SIZE_MAX, SIZE_MAX - 1}) {
    CHECK(refusal([&](EngineSpec& s) { s.threads = odd; }) == ErrorCode::kBadArgument);
  }
  // 16 x 16 x 3 x 2^56 is 0 in 64 bits.
  for (const size_t odd : {size_t{0}, size_t{1} << 56, size_t{1} << 60, SIZE_MAX}) {
    CHECK(refusal([&](EngineSpec& s) { s.batch_size = odd; }) == ErrorCode::kBadArgument);
  }
  for (const double odd : {-0.1, 1.1, kNan, kInfinite}) {
    CHECK(refusal([&](EngineSpec& s) { s.boxes = {true, odd}; }) == ErrorCode::kBadArgument);
    CHECK(refusal([&](EngineSpec& s) {
            s.format = {.type = PixelType::kFloat16, .std = {1.0, odd < 0 ? odd : 0.0, 1.0}};
          }) == ErrorCode::kBadArgument);
  }
  CHECK(refusal([](EngineSpec& s) { s.format.mean = {0.0, kNan, 0.0}; }) == ErrorCode::kBadArgument);
  CHECK(refusal([](EngineSpec& s) { s.format.std = {1.0, 1.0, 1e-300}; }) == ErrorCode::kBadArgument);
}

TEST_CASE("a batch of one engine is not filled by another, whose images are larger") {
  const auto source = std::make_shared<tests::CountedSource>(std::vector<uint64_t>{10});
  EngineSpec spec;
  spec.transforms = {resize_to({2, 2})};
  BatchEngine small(source, spec);
  spec.transforms = {resize_to({512, 512})};
  BatchEngine large(source, spec);
  small.submit({.samples = {{}}, .epoch = 0});
  std::optional<Batch> batch;
  while (!batch) batch = small.next(std::chrono::milliseconds(50));
  CHECK(code_of([&] { large.replace(*batch, 0, {0}, 0); }) == ErrorCode::kBadArgument);
  CHECK(code_of([&] { small.replace(*batch, 1, {0}, 0); }) == ErrorCode::kBadArgument);
  CHECK(code_of([&] { small.replace(*batch, 0, {0}, 0); }) == ErrorCode::kBadImage);  // it is not a JPEG
}

TEST_CASE("the decode loop refuses what an engine refuses") {
  const auto jpeg = tests::jpeg({24, 20}, {}, 3, 0);
  const std::span<const uint8_t> image = jpeg;
  const uint64_t first = 0;
  const auto run = [&](const TransformSpec& transform, size_t threads) {
    return code_of([&] {
      run_decode_loop({&image, 1}, {&first, 1}, transform, DecodeMode::kExact, PixelMode::kRgb, 0, 0,
                      threads);
    });
  };
  CHECK(run(random_crop(), 1) == std::nullopt);
  for (const size_t threads : {size_t{0}, kMostThreads + 1, SIZE_MAX}) {
    CHECK(run(random_crop(), threads) == ErrorCode::kBadArgument);
  }
}

TEST_CASE("an image is not made anew at a size that no JPEG has") {
  const auto jpeg = tests::jpeg({24, 20}, {}, 3, 0);
  Reencoder reencoder;
  for (const Extent size : {Extent{0, 1}, Extent{1, -1}, Extent{kMostJpegSide + 1, 1}, Extent{1, kMost}}) {
    const ReencodeSpec spec{.part = {0, 0, 24, 20}, .size = size, .encode = {}, .max_pixels = UINT64_MAX};
    CHECK(code_of([&] { reencoder.run(jpeg, spec); }) == ErrorCode::kBadArgument);
  }
}

}  // namespace
}  // namespace stoker
