#include "core/codec_loop.h"

#include <atomic>
#include <exception>
#include <mutex>
#include <thread>

#include "core/errors.h"
#include "core/view_decoder.h"

namespace stoker {

void run_codec_loop(std::span<const std::span<const uint8_t>> images, std::span<const uint64_t> keys,
                    const ViewSpec& view, DecodeMode decode, uint64_t seed, uint64_t epoch, size_t threads) {
  for (const uint64_t key : keys) {
    if (key >= images.size()) {
      throw Error(ErrorCode::kBadArgument,
                  "There is no image " + std::to_string(key) + " among " + std::to_string(images.size()));
    }
  }
  std::atomic<size_t> next{0};
  std::mutex mutex;
  std::exception_ptr error;
  const auto work = [&] {
    try {
      ViewDecoder decoder(decode);
      const size_t stride = static_cast<size_t>(view.out.width) * kRgbBytes;
      std::vector<uint8_t> slot(stride * static_cast<size_t>(view.out.height));
      for (size_t i = next++; i < keys.size(); i = next++) {
        const RgbSlot out{slot.data(), stride};
        decoder.decode({.bytes = images[keys[i]]}, {&view, 1}, SampleRandom(seed, epoch, keys[i]),
                       kDefaultMaxPixels, {&out, 1});
      }
    } catch (...) {  // a thread root: the caller gets it
      const std::lock_guard lock(mutex);
      if (!error) error = std::current_exception();
      next = keys.size();
    }
  };
  std::vector<std::thread> workers;
  for (size_t i = 0; i < threads; ++i) workers.emplace_back(work);
  for (std::thread& worker : workers) worker.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace stoker
