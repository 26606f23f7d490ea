#include "bench/decode_loop.h"

#include <atomic>
#include <cerrno>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/threads/pool.h"
#include "core/threads/share_work.h"
#include "core/transforms/transform_decoder.h"

namespace stoker {

void run_decode_loop(std::span<const std::span<const uint8_t>> images, std::span<const uint64_t> indices,
                     const TransformSpec& transform, DecodeMode decode, PixelMode mode, uint64_t seed,
                     uint64_t epoch, size_t threads) {
  transform.check_mode(mode);
  if (threads < 1 || threads > kMostThreads) {
    throw Error(ErrorCode::kBadArgument, "Cannot decode on " + std::to_string(threads) +
                                             " threads; there must be 1.." + std::to_string(kMostThreads));
  }
  for (const uint64_t index : indices) {
    if (index >= images.size()) {
      throw Error(ErrorCode::kBadArgument,
                  "There is no image " + std::to_string(index) + " among " + std::to_string(images.size()));
    }
  }
  std::atomic<size_t> next{0};
  const auto work = [&] {
    try {
      TransformDecoder decoder(decode, nullptr, mode);
      const size_t stride = static_cast<size_t>(transform.out().width) * pixel_bytes(mode);
      std::vector<uint8_t> slot(stride * static_cast<size_t>(transform.out().height));
      for (size_t i = next++; i < indices.size(); i = next++) {
        const RgbSlot out{slot.data(), stride};
        decoder.decode({.bytes = images[indices[i]]}, {&transform, 1}, SampleRandom(seed, epoch, indices[i]),
                       kDefaultMaxPixels, {&out, 1});
      }
    } catch (...) {
      next = indices.size();  // so that the others end
      throw;
    }
  };
  const size_t ran = share_work(threads, work);
  if (ran < threads) {
    throw Error(ErrorCode::kIo,
                "the system starts no more than " + std::to_string(ran) + " of " + std::to_string(threads) +
                    " threads; measure with fewer, or raise the limit of processes or of memory",
                {}, EAGAIN);
  }
}

}  // namespace stoker
