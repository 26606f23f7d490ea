// The read path: sample indices in, batches of pixels out, on native threads. This file has the queue, its
// order and the handling of failures; SampleLoader loads the samples.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "core/clocks/consumer_clock.h"
#include "core/clocks/stage_clock.h"
#include "core/clocks/trace_log.h"
#include "core/clocks/worker_clock.h"
#include "core/engine/batch.h"
#include "core/engine/engine_spec.h"
#include "core/engine/look_ahead.h"
#include "core/engine/sample_loader.h"
#include "core/remote/remote_reader.h"
#include "core/sources/sample_source.h"
#include "core/threads/pool.h"

namespace stoker {

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
// A sample that fails is listed in its batch, and the consumer raises its error or calls replace(). Both
// happen in batch order, so the result does not depend on threads.
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
  Where where(uint64_t number) const { return loader_.source().where(number); }

  // Which bytes of remote storage this engine will ask for to load a sample.
  RemoteSpan remote_span(SampleId id) const;

  // Drops what is queued. Returns when the samples being decoded are done. May be called twice, by any thread
  // but the engine's own.
  void close();

  // Forgets every queued batch without waiting for it.
  void drop_pending();

  const EngineSpec& spec() const { return loader_.spec(); }

  // May be asked for from any thread, also after close().
  EngineTotals totals() const;

  // Whether samples are timed, from now on; switched off only to see what that costs.
  void time_stages(bool on);

  // Whether the system is asked to read samples before their turn, as it is once reading proves slow.
  bool looks_ahead() const { return look_ahead_.on(); }

  // Finished batches that wait for next(), in a row.
  size_t ready();

  // For the caller of next(), which alone knows when it asks and when it has the batch.
  ConsumerClock& consumer() { return consumer_; }

  // What the threads do when. Lanes: one a thread, one for replace(), and the consumer's.
  TraceLog& trace() { return trace_; }

 private:
  struct Pending;
  struct Worker;

  std::vector<std::unique_ptr<Worker>> make_workers();
  // How many samples, one behind the other, a thread takes at a time of a batch of so many.
  size_t run_length(size_t count) const;
  void load_run(Pending& batch, size_t begin, size_t end, size_t worker);
  void load(Pending& batch, size_t row, Worker& worker);
  void allocate(Pending& batch) const;
  static void fail(Pending& batch, size_t row, const std::exception_ptr& error);

  SampleLoader loader_;
  const uint64_t id_;  // of this engine, in this process
  TraceLog trace_;
  ConsumerClock consumer_;
  std::vector<std::unique_ptr<Worker>> workers_;  // one a thread, and the last for replace()
  // One error for all samples that fail for lack of memory: without memory, the C++ runtime has room for only
  // a few exceptions, and ends the process when more are thrown.
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
