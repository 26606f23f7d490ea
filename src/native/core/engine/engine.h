// The read path: sample indices in, batches of pixels out, on native threads.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/pixel_mode.h"
#include "core/base/pixels.h"
#include "core/clocks/consumer_clock.h"
#include "core/clocks/stage_clock.h"
#include "core/clocks/trace_log.h"
#include "core/clocks/worker_clock.h"
#include "core/color/pixel_format.h"
#include "core/engine/batch_column.h"
#include "core/engine/look_ahead.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/entry_points.h"
#include "core/remote/remote_reader.h"
#include "core/sources/memory_cache.h"
#include "core/sources/record_fields.h"
#include "core/sources/sample_source.h"
#include "core/threads/buffer_pool.h"
#include "core/threads/pool.h"
#include "core/transforms/transform.h"

namespace stoker {

// Pixels of the mode of an engine, row by row without gaps.
struct ConvertedImage {
  std::vector<uint8_t> pixels;
  Extent size;
};

// Decodes an image file whose format the core does not. Called by any worker, several at a time. What it
// throws fails the sample.
using ConvertImage = std::function<ConvertedImage(std::span<const uint8_t> file)>;

// Which boxes batches have.
struct BoxRule {
  bool wanted = false;
  double min_visible = 0.0;  // of a box's area
};

inline constexpr size_t kMostTransforms = 64;

struct EngineSpec {
  std::vector<TransformSpec> transforms;  // all of one decode; 1 .. kMostTransforms
  PixelFormat format;
  PixelMode mode = PixelMode::kRgb;
  BoxRule boxes;
  FieldSpec fields;
  DecodeMode decode = DecodeMode::kExact;
  uint64_t seed = 0;
  uint64_t max_pixels = kDefaultMaxPixels;
  size_t batch_size = 1;                 // the most samples a batch may have
  size_t threads = 1;                    // 1 .. kMostThreads
  size_t spare_buffers = 4;              // image buffers kept for reuse, of each transform
  std::shared_ptr<MemoryCache> decoded;  // keeps whole images as pixels of the mode; may be none
  std::shared_ptr<RemoteReader> ahead;   // fetches remote samples by a schedule; may be none
  ConvertImage convert;  // for files of other formats than the core decodes; without it those are errors
};

// One sample of a batch.
struct SampleRequest {
  SampleId id;          // in the source
  uint64_t index = 0;   // what the batch calls it
  uint64_t stream = 0;  // what random choices depend on
};

// What a batch is to be made of.
struct BatchRequest {
  std::vector<SampleRequest> samples;
  uint64_t epoch = 0;
};

// A sample that could not be loaded. Its pixels, its label, its boxes and its fields are not set.
struct SampleFailure {
  size_t row = 0;  // in the batch
  std::exception_ptr error;
};

// One finished batch. The image buffers go back to the engine's pools when the last reference dies.
struct Batch {
  std::vector<std::shared_ptr<uint8_t[]>>
      images;  // of each transform: size images of its `out`, as the engine's format says
  std::vector<int64_t> labels;
  std::vector<uint64_t> indices;
  std::vector<uint64_t> seeds;  // for the random choices of the consumer
  std::vector<std::vector<std::vector<TransformedBox>>>
      boxes;                         // of each transform, of each sample; empty if not wanted
  std::vector<BatchColumn> columns;  // of the fields
  std::vector<std::vector<std::shared_ptr<uint8_t[]>>>
      planes;  // of each plane of the fields, of each transform: images as `images`, or masks of one channel
  std::vector<SampleFailure> failures;  // in batch order
  uint64_t epoch = 0;
  std::vector<uint64_t> streams;
  uint32_t number = 0;  // in the order of submission
  uint64_t engine = 0;  // which made it
};

// What an engine has done since it began.
struct EngineTotals {
  size_t threads = 0;
  StageTotals stages;
  WorkerTotals workers;
  ConsumerTotals consumer;
};

// Batches come out in the order they were submitted; their samples are worked on in that order by all
// threads, and work on a batch begins while stragglers of the one before are still decoding. submit() and
// next() belong to one consumer thread.
//
// A sample that fails is listed in its batch, and the consumer raises its error or calls
// replace(): both in batch order, so what comes of failures does not depend on threads.
class BatchEngine {
 public:
  // Throws kBadArgument for a specification that cannot be carried out, such as batches larger than memory
  // can be, and what ThreadPool throws.
  BatchEngine(std::shared_ptr<const SampleSource> source, EngineSpec spec);
  ~BatchEngine();

  // Queues one batch; never blocks. Memory for its pixels is taken when the first of its samples is decoded.
  void submit(const BatchRequest& request);

  // The oldest batch, or nothing if it is not ready within `timeout`. kClosed after close() or with none
  // queued.
  std::optional<Batch> next(std::chrono::milliseconds timeout);

  // Loads another sample in place of one that failed, on the calling thread. The random choices stay those of
  // the sample that was asked for. Throws what is wrong with this one too, and kBadArgument for a batch of
  // another engine.
  void replace(Batch& batch, size_t row, SampleId id, uint64_t index);

  // Where a sample lies, for messages.
  Where where(uint64_t number) const { return source_->where(number); }

  // Which bytes of remote storage this engine will ask for to load a sample.
  RemotePlace remote_place(SampleId id) const;

  // Drops what is queued. Returns when the samples being decoded are done. May be called twice, by any thread
  // but the engine's own.
  void close();

  // Forgets every queued batch without waiting for it.
  void drop_pending();

  const EngineSpec& spec() const { return spec_; }

  // May be asked for from any thread, also after close().
  EngineTotals totals() const;

  // Whether samples are timed, from now on; switched off only to see what that costs.
  void time_stages(bool on);

  // Whether the system is asked to read samples before their turn, which it is where reading proves slow.
  bool looks_ahead() const { return look_ahead_.on(); }

  // Finished batches that wait for next(), in a row.
  size_t ready();

  // For the caller of next(), which alone knows when it asks and when it has the batch.
  ConsumerClock& consumer() { return consumer_; }

  // What the threads do when. Lanes: one a thread, one for replace(), and the consumer's.
  TraceLog& trace() { return trace_; }

 private:
  struct Pending;
  struct Scratch;

  // One image of every sample, as batches have it.
  struct Shown {
    PixelMode mode = PixelMode::kRgb;
    bool plain = true;                                      // rows of pixels are what is wanted already
    std::vector<TransformSpec> transforms = {};             // what becomes of it
    std::vector<size_t> slot_bytes = {};                    // of each transform
    std::vector<std::shared_ptr<BufferPool>> buffers = {};  // of each transform
  };
  using Buffers = std::vector<std::shared_ptr<uint8_t[]>>;

  Shown shown(std::vector<TransformSpec> transforms, PixelMode mode, const PixelFormat& format) const;
  std::vector<Shown> shown_planes() const;
  // Whether a sample needs nothing but the pixels that are kept of it, if there are any.
  bool shows_kept(SampleId id) const;
  bool is_kept(SampleId id) const;

  std::vector<std::unique_ptr<Scratch>> make_scratch();
  // How many samples, one behind the other, a thread takes at a time of a batch of so many.
  size_t run_length(size_t count) const;
  void load_run(Pending& batch, size_t begin, size_t end, size_t worker);
  void load(Pending& batch, size_t row, Scratch& scratch);
  void load_sample(Batch& batch, size_t row, SampleId id, Scratch& scratch) const;
  // The short way for records whose pixels go into the batch as they are: they are checked while they are
  // copied. False if the sample has to go the ordinary way, which also says what is wrong with it.
  bool copy_sample(Batch& batch, size_t row, SampleId id, Scratch& scratch) const;
  // What the source says of a sample, with its fields where batches have some.
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, Scratch& scratch) const;
  // Where decoding may begin in an image of the sample that `bytes` hold.
  EntryPoints* entries_of(uint64_t number, std::span<const uint8_t> bytes, Scratch& scratch) const;
  // As it is kept, or else as the source has it; fills in everything about it but the pixels.
  StoredImage find_image(Batch& batch, size_t row, SampleId id, Scratch& scratch) const;
  // A file of a format that the core does not decode as its pixels; others as they are.
  StoredImage convert(StoredImage image, Scratch& scratch) const;
  // Keeps the pixels of an image file if they fit, which is decoded unless convert() has done that.
  StoredImage keep(StoredImage image, uint64_t number, int64_t label, Scratch& scratch) const;
  void show(Batch& batch, size_t row, const StoredImage& image, Scratch& scratch) const;
  void show_plane(Batch& batch, size_t row, size_t plane, const SampleRandom& random, Scratch& scratch) const;
  // Where the rows of each transform go first: into the batch, or if they are to be converted, into the
  // scratch.
  static void choose_slots(const Shown& shown, const Buffers& images, size_t row, Scratch& scratch);
  void write(const Shown& shown, const Buffers& images, size_t row, Scratch& scratch) const;
  static void keep_columns(Batch& batch, size_t row, const Scratch& scratch);
  void allocate(Pending& batch) const;
  static void fail(Pending& batch, size_t row, const std::exception_ptr& error);

  std::shared_ptr<const SampleSource> source_;
  EngineSpec spec_;
  const uint64_t id_;  // of this engine, in this process
  TraceLog trace_;
  ConsumerClock consumer_;
  PixelWriter writer_;
  // Pixels may go into the batch as they are stored: until an image came that has to be decoded.
  mutable std::atomic<bool> copies_;
  Shown image_;                                    // the first image
  std::vector<Shown> planes_;                      // of the fields
  const std::unique_ptr<EntryTable> entries_;      // of the first image of each sample
  std::vector<std::unique_ptr<Scratch>> scratch_;  // one a worker, and the last for replace()
  // Of all samples that fail for lack of memory: the C++ runtime itself has room for only so many exceptions
  // where there is none left, and ends the process when asked for more.
  const std::exception_ptr no_memory_ = std::make_exception_ptr(std::bad_alloc());

  std::mutex replace_mutex_;  // taken before mutex_
  std::mutex mutex_;
  std::condition_variable ready_;
  std::list<std::shared_ptr<Pending>> pending_;
  uint32_t submitted_ = 0;
  bool closed_ = false;

  LookAhead look_ahead_;
  ThreadPool pool_;  // last: its threads use everything above
};

}  // namespace stoker
