// The read path: sample numbers in, batches of pixels out, on native threads.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/buffer_pool.h"
#include "core/jpeg.h"
#include "core/pool.h"
#include "core/sample_source.h"
#include "core/view.h"

namespace stoker {

// Makes a JPEG of an image in another format. Called by any worker, several at a time. What it throws fails
// the sample.
using ConvertImage = std::function<std::vector<uint8_t>(std::span<const uint8_t> image)>;

struct EngineSpec {
  ViewSpec view;
  uint64_t seed = 0;
  uint64_t max_pixels = kDefaultMaxPixels;
  size_t batch_size = 1;  // the most samples a batch may have
  size_t threads = 1;
  size_t spare_buffers = 4;  // image buffers kept for reuse
  ConvertImage convert;      // for images that do not begin as a JPEG does; without it those are errors
};

// What a batch is to be made of.
struct BatchRequest {
  std::vector<uint64_t> keys;     // numbers of samples in the source
  std::vector<int32_t> objects;   // which object of each, or kWholeImage; empty: all whole
  std::vector<uint64_t> numbers;  // what Batch.keys reports and random choices depend on; empty: the keys
  uint64_t epoch = 0;
};

// One finished batch. The image buffer goes back to the engine's pool when the last reference dies.
struct Batch {
  std::shared_ptr<uint8_t[]> images;  // size x out.height x out.width x 3
  std::vector<int64_t> labels;
  std::vector<uint64_t> keys;
};

// Batches come out in the order they were submitted; their samples are worked on in that order by all
// threads, and work on a batch begins while stragglers of the one before are still decoding. submit() and
// next() belong to one consumer thread.
//
// A sample that fails fails its batch: next() throws the error of the batch's first failing sample, in batch
// order, so which error is seen does not depend on threads.
class BatchEngine {
 public:
  BatchEngine(std::shared_ptr<const SampleSource> source, EngineSpec spec);
  ~BatchEngine();

  // Queues one batch; never blocks. Memory for its pixels is taken when the first of its samples is decoded.
  void submit(BatchRequest request);

  // The oldest batch, or nothing if it is not ready within `patience`. kClosed after close() or with none
  // queued.
  std::optional<Batch> next(std::chrono::milliseconds patience);

  // Drops what is queued. Returns when the samples being decoded are done. May be called twice.
  void close();

  // Forgets every queued batch without waiting for it.
  void drop_pending();

  const EngineSpec& spec() const { return spec_; }

 private:
  struct Pending;
  struct Scratch;

  static std::vector<std::unique_ptr<Scratch>> make_scratch(size_t workers);
  void load(Pending& batch, size_t index, size_t worker);
  void load_sample(Pending& batch, size_t index, Scratch& scratch);
  void show(const Pending& batch, size_t index, StoredImage image, Scratch& scratch);

  std::shared_ptr<const SampleSource> source_;
  EngineSpec spec_;
  size_t slot_bytes_;
  std::shared_ptr<BufferPool> buffers_;
  std::vector<std::unique_ptr<Scratch>> scratch_;  // one a worker

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<std::shared_ptr<Pending>> pending_;
  bool closed_ = false;

  ThreadPool pool_;  // last: its threads use everything above
};

}  // namespace stoker
