#include "core/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "core/base/errors.h"

namespace stoker {

// Only the sample `row` of a batch is ever written by the thread that loads it.
struct BatchEngine::Pending {
  Batch batch;
  std::shared_ptr<const std::vector<SampleId>> ids;
  uint64_t position = 0;  // of its first sample, among all that were submitted
  size_t run_length = 1;  // samples that a thread takes at a time
  std::mutex allocating;
  std::atomic<bool> allocated{false};
  std::atomic<size_t> left{0};
  std::atomic<bool> dropped{false};
  std::mutex failures_mutex;
  bool done = false;  // under the engine's mutex
};

// On lines of the cache that no other thread writes to.
struct alignas(64) BatchEngine::Worker {
  explicit Worker(std::unique_ptr<SampleScratch> memory) : scratch(std::move(memory)) {}

  const std::unique_ptr<SampleScratch> scratch;
  LookAhead::Reads reads;
};

namespace {

std::atomic<uint64_t> engines_created{0};

}  // namespace

BatchEngine::BatchEngine(std::shared_ptr<const SampleSource> source, EngineSpec spec)
    : loader_(std::move(source), std::move(spec)),
      id_(++engines_created),
      trace_(loader_.spec().threads + 2),
      consumer_(trace_, static_cast<uint16_t>(loader_.spec().threads + 1)),
      workers_(make_workers()),
      look_ahead_([this](SampleId id) {
        return loader_.is_cached(id) ? 0 : loader_.source().start_reading(id.number);
      }),
      pool_(loader_.spec().threads) {}

BatchEngine::~BatchEngine() {
  close();
}

std::vector<std::unique_ptr<BatchEngine::Worker>> BatchEngine::make_workers() {
  std::vector<std::unique_ptr<Worker>> workers(loader_.spec().threads + 1);
  for (size_t i = 0; i < workers.size(); ++i) {
    workers[i] = std::make_unique<Worker>(loader_.make_scratch(i));
    workers[i]->scratch->source.clock.attach(&trace_, static_cast<uint16_t>(i));
  }
  workers.back()->scratch->source.remote.out_of_turn = true;  // what stands in for others is in no schedule
  return workers;
}

void BatchEngine::submit(const BatchRequest& request) {
  const size_t count = request.samples.size();
  if (count == 0 || count > spec().batch_size) {
    throw Error(ErrorCode::kBadArgument, "A batch of " + std::to_string(count) +
                                             " samples; this engine takes 1.." +
                                             std::to_string(spec().batch_size));
  }
  auto batch = std::make_shared<Pending>();
  Batch& rows = batch->batch;
  rows.labels.assign(count, -1);
  auto ids = std::make_shared<std::vector<SampleId>>();
  ids->reserve(count);
  rows.indices.reserve(count);
  rows.streams.reserve(count);
  rows.epoch = request.epoch;
  rows.engine = id_;
  for (const SampleRequest& sample : request.samples) {
    ids->push_back(sample.id);
    rows.indices.push_back(sample.index);
    rows.streams.push_back(sample.stream);
  }
  batch->ids = std::move(ids);
  rows.seeds.resize(count);
  if (spec().boxes.wanted)
    rows.boxes.assign(spec().transforms.size(), std::vector<std::vector<TransformedBox>>(count));
  rows.columns.assign(spec().fields.columns.size(), BatchColumn(count, workers_.size()));
  rows.failures.reserve(count);  // so that a thread without memory can still record its failure
  batch->left = count;
  batch->run_length = run_length(count);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed; make a new one");
    batch->position = look_ahead_.add(batch->ids);
    rows.number = submitted_;
    pending_.push_back(batch);
    ++submitted_;
  }
  try {
    const size_t length = batch->run_length;
    pool_.submit((count + length - 1) / length, [this, batch, count](size_t run, size_t worker) {
      const size_t begin = run * batch->run_length;
      load_run(*batch, begin, std::min(begin + batch->run_length, count), worker);
    });
  } catch (...) {  // no memory for the job: a batch without one would be waited for in vain
    const std::lock_guard lock(mutex_);
    std::erase(pending_, batch);
    throw;
  }
}

std::optional<Batch> BatchEngine::next(std::chrono::milliseconds timeout) {
  std::shared_ptr<Pending> batch;
  {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || pending_.empty() || pending_.front()->done; };
    if (!ready_.wait_for(lock, timeout, ready)) return std::nullopt;
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed; make a new one");
    if (pending_.empty()) throw Error(ErrorCode::kClosed, "No batch is queued");
    batch = std::move(pending_.front());
    pending_.pop_front();
  }
  look_ahead_.pass(batch->position + batch->ids->size());
  // Moved out of an object that a worker may release last, so that only this thread owns the errors.
  Batch result = std::move(batch->batch);
  std::ranges::sort(result.failures, {}, &SampleFailure::row);
  return result;
}

void BatchEngine::drop_pending() {
  std::list<std::shared_ptr<Pending>> dropped;
  const std::lock_guard lock(mutex_);
  for (const auto& batch : pending_) batch->dropped = true;
  dropped.swap(pending_);
  look_ahead_.forget();
}

void BatchEngine::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
    for (const auto& batch : pending_) batch->dropped = true;
  }
  ready_.notify_all();
  pool_.close();
  look_ahead_.close();
  drop_pending();
  const std::lock_guard replacing(replace_mutex_);
  loader_.forget_convert();
  for (const auto& worker : workers_) worker->scratch->release();
}

// Copying a sample takes so little time that synchronising threads would be noticeable. So a thread takes up
// to kMostRun samples at a time: threads then write to different cache lines, and a thread knows what it
// copies next. Samples that are decoded, or waited for, are taken one by one.
size_t BatchEngine::run_length(size_t count) const {
  constexpr size_t kMostRun = 16, kLeastRuns = 4;  // of a thread, so that all have as much to do
  if (!loader_.copies_raw() || spec().ahead || look_ahead_.on()) return 1;
  return std::clamp(count / (kLeastRuns * spec().threads), size_t{1}, kMostRun);
}

void BatchEngine::load_run(Pending& batch, size_t begin, size_t end, size_t worker) {
  SampleScratch& scratch = *workers_[worker]->scratch;
  for (size_t row = begin; row < end; ++row) {
    if (batch.dropped) break;
    const size_t next = row + 1 < end ? row + 1 : end + (spec().threads - 1) * batch.run_length;
    scratch.next = next < batch.ids->size() ? std::optional((*batch.ids)[next].number) : std::nullopt;
    load(batch, row, *workers_[worker]);
  }
  if ((batch.left -= end - begin) != 0) return;
  {
    const std::lock_guard lock(mutex_);
    batch.done = true;
  }
  ready_.notify_one();
}

void BatchEngine::load(Pending& batch, size_t row, Worker& worker) {
  batch.batch.seeds[row] = SampleRandom(spec().seed, batch.batch.epoch, batch.batch.streams[row]).user_seed();
  try {
    if (!batch.allocated) allocate(batch);
    StageClock& clock = worker.scratch->source.clock;
    const uint64_t position = batch.position + row;
    clock.begin(batch.batch.number, batch.batch.indices[row], look_ahead_.begin(position, worker.reads));
    loader_.load(batch.batch, row, (*batch.ids)[row], *worker.scratch);
    if (clock.read_ns() != 0) look_ahead_.end(position, worker.reads, clock.read_ns(), clock.read_bytes());
  } catch (const std::bad_alloc&) {
    fail(batch, row, no_memory_);
  } catch (...) {  // a thread root: whatever it is, the consumer gets it
    fail(batch, row, std::current_exception());
  }
}

void BatchEngine::replace(Batch& batch, size_t row, SampleId id, uint64_t index) {
  if (batch.engine != id_) {
    throw Error(ErrorCode::kBadArgument, "The batch is one of another engine, whose images may be smaller");
  }
  if (row >= batch.indices.size() || batch.images.empty()) {
    throw Error(ErrorCode::kBadArgument, "The batch has no sample " + std::to_string(row));
  }
  const std::lock_guard replacing(replace_mutex_);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed; make a new one");
  }
  SampleScratch& scratch = *workers_.back()->scratch;
  scratch.source.clock.begin(batch.number, index);
  loader_.load(batch, row, id, scratch);
  batch.indices[row] = index;
}

void BatchEngine::time_stages(bool on) {
  for (const auto& worker : workers_) worker->scratch->source.clock.set_on(on);
}

size_t BatchEngine::ready() {
  const std::lock_guard lock(mutex_);
  const auto waited_for = std::ranges::find(pending_, false, [](const auto& batch) { return batch->done; });
  return static_cast<size_t>(std::distance(pending_.begin(), waited_for));
}

EngineTotals BatchEngine::totals() const {
  EngineTotals totals{
      .threads = spec().threads, .stages = {}, .workers = pool_.totals(), .consumer = consumer_.totals()};
  for (const auto& worker : workers_) totals.stages += worker->scratch->source.clock.totals();
  return totals;
}

// Not with std::call_once: an exception that leaves it passes through the C library, which then ends the
// process if there is no memory (glibc), or hangs (glibc before 2.34).
void BatchEngine::allocate(Pending& batch) const {
  const std::lock_guard lock(batch.allocating);
  if (batch.allocated) return;
  loader_.allocate(batch.batch);
  batch.allocated = true;
}

void BatchEngine::fail(Pending& batch, size_t row, const std::exception_ptr& error) {
  const std::lock_guard lock(batch.failures_mutex);
  batch.batch.failures.push_back({row, error});
}

RemoteSpan BatchEngine::remote_span(SampleId id) const {
  return loader_.is_cached(id) ? RemoteSpan{} : loader_.source().remote_span(id.number);
}

}  // namespace stoker
