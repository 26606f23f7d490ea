// The decoders of our own, of baseline and of progressive images, without libjpeg behind them: what they give
// are libjpeg's pixels, in any region, from any restart marker or entry point on; a region is that part of
// the whole, and every set of kernels gives the same, shrunken or not. Points of other images change nothing,
// and wrong ones do no harm.
#include "core/jpeg/entry_points.h"
#include "core/jpeg/region/baseline_decoder.h"
#include "core/jpeg/region/progressive_decoder.h"
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

// With one set of kernels, kept from input to input.
struct Decoders {
  stoker::BaselineDecoder baseline;
  stoker::ProgressiveDecoder progressive;
  bool is_progressive = false;  // the image that was opened
  stoker::Extent size = {};

  bool open(std::span<const uint8_t> bytes) {
    stoker::FrameReader headers;
    if (!headers.open(bytes)) return false;
    is_progressive = headers.frame().progressive;
    size = headers.frame().size;
    return is_progressive ? progressive.open(headers) : baseline.open(headers);
  }
  bool check() { return is_progressive ? progressive.check() : baseline.check(); }
  bool start(stoker::Rect part, int32_t shrink, stoker::EntryPoints entries) {
    return is_progressive ? progressive.start(part, shrink) : baseline.start(part, shrink, entries);
  }
  std::optional<int32_t> next(uint8_t* out, size_t stride) {
    return is_progressive ? progressive.next(out, stride) : baseline.next(out, stride);
  }
};

Outcome decoded(Decoders& decoders, std::span<const uint8_t> bytes, int32_t shrink, stoker::Rect part,
                stoker::EntryPoints entries = {}) {
  Outcome outcome;
  const size_t stride = static_cast<size_t>(part.width) * stoker::kRgbxBytes;
  std::vector<uint8_t> out(stride * static_cast<size_t>(part.height) +
                           stoker::kPlanePadding * stoker::kRgbxBytes);
  outcome.error = !stoker::fuzz::succeeds([&] {
    require(decoders.open(bytes));
    if (!decoders.start(part, shrink, entries)) return;
    for (int32_t y = 0; y < part.height;) {
      const auto rows = decoders.next(out.data() + static_cast<size_t>(y) * stride, stride);
      if (!rows) return;
      y += *rows;
      require(y <= part.height);
    }
    outcome.pixels = cut({out.data(), stride, {part.width, part.height}}, {0, 0, part.width, part.height});
  });
  return outcome;
}

std::vector<Decoders>& all_decoders() {
  static std::vector<Decoders> all = [] {
    std::vector<Decoders> decoders;
    const auto& planes = stoker::plane_kernels();
    const auto& entropy = stoker::entropy_kernels();
    for (size_t i = 0; i < std::max(planes.size(), entropy.size()); ++i) {
      const auto& plane = *planes[std::min(i, planes.size() - 1)];
      const auto& bits = *entropy[std::min(i, entropy.size() - 1)];
      decoders.push_back({stoker::BaselineDecoder(plane, bits), stoker::ProgressiveDecoder(plane, bits)});
    }
    return decoders;
  }();
  return all;
}

// From points that were noted of the same bytes, of others, and that nobody noted.
void decode_from_points(Decoders& decoders, std::span<const uint8_t> bytes, int32_t shrink, stoker::Rect part,
                        const Outcome& wanted, stoker::Extent shrunken, stoker::fuzz::Input& choices) {
  stoker::EntryTable table(2);
  const stoker::EntryPoints noted = table.of(0, bytes.size(), 0);
  for (int i = 0; i < 3; ++i) {
    const stoker::Rect other = stoker::fuzz::some_part(choices, shrunken);
    const Outcome expected = decoded(decoders, bytes, shrink, other);
    require(decoded(decoders, bytes, shrink, other, noted) == expected);
  }
  require(decoded(decoders, bytes, shrink, part, noted) == wanted);
  require(decoded(decoders, bytes, shrink, part, table.of(0, bytes.size(), 1)) == wanted);

  stoker::EntryPoints made_up = table.of(1, bytes.size(), 0);
  uint64_t word = choices.word();
  for (size_t i = 0; i < made_up.most(); ++i) {
    word = word * 6364136223846793005U + 1442695040888963407U;
    stoker::EntryPoint point = stoker::unpack(word);
    point.byte %= static_cast<uint32_t>(bytes.size());
    if (point.byte != 0 && i % 3 != 0) made_up.note(i, made_up.most(), point);
  }
  const Outcome from_any = decoded(decoders, bytes, shrink, part, made_up);
  require(from_any == wanted || decoders.is_progressive || decoders.baseline.entered());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  stoker::fuzz::Input input(data, size);
  const int32_t shrink = 1 << (input.byte() & 3);
  stoker::fuzz::Input choices = input.choices(8);
  const std::vector<uint8_t> bytes = input.rest();
  Decoders& first = all_decoders().front();
  if (!first.open(bytes)) return 0;
  const stoker::Extent image = first.size;
  if (static_cast<uint64_t>(image.width) * static_cast<uint64_t>(image.height) > kMaxPixels) return 0;
  const stoker::Extent shrunken{(image.width + shrink - 1) / shrink, (image.height + shrink - 1) / shrink};
  const stoker::Rect part = stoker::fuzz::some_part(choices, shrunken);
  const Outcome outcome = decoded(first, bytes, shrink, part);
  const Outcome all = decoded(first, bytes, shrink, {0, 0, shrunken.width, shrunken.height});
  if (all.pixels) require(outcome.pixels == cut(*all.pixels, part));
  bool passed = false;
  const bool error = !stoker::fuzz::succeeds([&] { passed = first.open(bytes) && first.check(); });
  require(error == all.error && passed == all.pixels.has_value());
  decode_from_points(first, bytes, shrink, part, outcome, shrunken, choices);
  for (auto& other : all_decoders()) require(decoded(other, bytes, shrink, part) == outcome);
  // Damage outside of the part of a baseline image may go unseen, so only what libjpeg decodes whole can be
  // compared.
  const auto whole = stoker::fuzz::libjpeg_pixels(bytes, kMaxPixels);
  if (whole) require(!outcome.error);
  if (shrink == 1 && outcome.pixels && whole) require(*outcome.pixels == cut(*whole, part));
  const bool is_whole = first.is_progressive || part == stoker::Rect{0, 0, image.width, image.height};
  if (is_whole && shrink == 1 && outcome.pixels) require(whole.has_value());
  return 0;
}
