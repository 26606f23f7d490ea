#include "core/sources/mapped_frame.h"

#include <algorithm>
#include <cstring>

#include "core/base/little_endian.h"
#include "core/base/medium_faults.h"
#include "core/shards/crc32c.h"

namespace stoker {
namespace {

// How far after the expected offset pixels are searched: the data before them, such as the name of a class,
// differ in length.
constexpr size_t kMostMoved = 512;

// Where pixels begin in a frame of `size` bytes, of which these are the first; 0: they are somewhere else.
size_t find_pixels(std::span<const uint8_t> head, size_t size, const PixelsGuess& guess) {
  if (size < kFrameBytes + guess.size) return 0;
  const size_t last = std::min(head.size(), size - kFrameFooterBytes - guess.size);
  const auto begins = [&](size_t at) {
    return load_le64(head.data() + at - sizeof(guess.before)) == guess.before;
  };
  const size_t expected = kFrameHeaderBytes + guess.begin;
  if (expected <= last && begins(expected)) return expected;
  for (size_t at = kFrameHeaderBytes + sizeof(guess.before); at <= last; ++at) {
    if (begins(at)) return at;
  }
  return 0;
}

bool is_header(std::span<const uint8_t> frame, uint64_t payload_bytes) {
  return std::ranges::equal(frame_header(payload_bytes), frame.first(kFrameHeaderBytes));
}

}  // namespace

std::span<const uint8_t> frame_in(std::span<const uint8_t> mapped, const RecordExtent& extent) {
  if (extent.offset > mapped.size() || extent.size > mapped.size() - extent.offset) return {};
  return mapped.subspan(extent.offset, extent.size);
}

std::span<const uint8_t> copy_mapped(std::span<const uint8_t> there, ScratchBytes& buffer) {
  if (there.size() < kFrameBytes || there.size() > kMostMappedFrame) return {};
  const std::span<uint8_t> frame(buffer.take(there.size()), there.size());
  const auto payload = frame.subspan(kFrameHeaderBytes, frame.size() - kFrameBytes);
  uint32_t sum = 0;
  const bool read = guarded(there, [there, frame, payload, &sum] {
    std::memcpy(frame.data(), there.data(), kFrameHeaderBytes);
    sum = crc32c_copy(0, there.subspan(kFrameHeaderBytes, payload.size()), payload.data());
    const auto footer = there.last(kFrameFooterBytes);
    std::memcpy(payload.data() + payload.size(), footer.data(), footer.size());
  });
  return read && is_header(frame, payload.size()) && stated_crc(payload) == sum ? payload
                                                                                : std::span<uint8_t>();
}

std::optional<FetchedSample> fetch_mapped(std::span<const uint8_t> there, SourceScratch& scratch) {
  if (there.size() < kFrameBytes || there.size() > kMostMappedFrame) return std::nullopt;
  const std::span<uint8_t> frame(scratch.bytes.take(there.size()), there.size());
  size_t pixels = 0;  // where they begin in the frame
  const PixelsGuess& guess = scratch.pixels;
  const bool read = guarded(there, [there, frame, &guess, &pixels] {
    size_t head = frame.size();
    if (guess.size != 0) head = std::min(head, kFrameHeaderBytes + guess.begin + kMostMoved);
    std::memcpy(frame.data(), there.data(), head);
    if (guess.size != 0) pixels = find_pixels(frame.first(head), frame.size(), guess);
    const size_t rest = pixels == 0 ? head : pixels + guess.size;
    std::memcpy(frame.data() + rest, there.data() + rest, frame.size() - rest);
  });
  const auto payload = frame.subspan(kFrameHeaderBytes, frame.size() - kFrameBytes);
  if (!read || !is_header(frame, payload.size())) return std::nullopt;
  scratch.clock.mark(Stage::kRead);
  scratch.clock.count_bytes(frame.size());
  FetchedSample fetched{.bytes = payload, .crc = stated_crc(payload)};
  if (pixels != 0) {
    fetched.left = frame.subspan(pixels, guess.size);
    fetched.mapped = there.data() + pixels;
  }
  return fetched;
}

}  // namespace stoker
