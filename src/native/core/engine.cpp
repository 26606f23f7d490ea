#include "core/engine.h"

#include <array>
#include <atomic>
#include <span>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/example.h"
#include "core/view_decoder.h"

namespace stoker {

// Only the sample `index` of a batch is ever written by the thread that loads it.
struct BatchEngine::Pending {
  Batch batch;
  uint64_t epoch = 0;
  std::once_flag allocated;
  std::atomic<size_t> left{0};
  std::atomic<bool> dropped{false};
  std::mutex error_mutex;
  size_t error_index = SIZE_MAX;
  std::exception_ptr error;
  bool done = false;  // under the engine's mutex
};

struct BatchEngine::Scratch {
  std::vector<uint8_t> record;
  ViewDecoder decoder;
};

namespace {

std::string file_name(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

// "shard.tfrecord, record 17 at byte 123456 (n01440764_10026.JPEG): ..."
Error located(const Error& error, Where where) {
  std::string message = file_name(where.path) + ", record " + std::to_string(where.record) + " at byte " +
                        std::to_string(where.offset);
  if (!where.source.empty()) message += " (" + where.source + ")";
  return {error.code(), message + ": " + error.what(), std::move(where), error.system_errno()};
}

// What the engine needs of one record; borrows from the payload.
struct Sample {
  std::span<const uint8_t> image;
  int64_t label = -1;
};

// Fills `source` first, so that whatever is wrong with the rest can be told by name.
Sample find_sample(std::span<const uint8_t> payload, const EngineSpec& spec, std::string& source) {
  std::array<Wanted, 3> wanted{{{spec.image_key, {}}, {spec.label_key, {}}, {spec.source_key, {}}}};
  find_features(payload, wanted);
  const auto& [image, label, name] = wanted;
  if (name.view.kind() == FeatureKind::kBytes && name.view.count() > 0) {
    const auto bytes = name.view.first_bytes();
    source.assign(bytes.begin(), bytes.end());
  }
  Sample sample{image.view.first_bytes()};
  if (!spec.label_key.empty()) sample.label = label.view.first_int64();
  return sample;
}

}  // namespace

BatchEngine::BatchEngine(std::shared_ptr<const RecordSet> records, EngineSpec spec)
    : records_(std::move(records)),
      spec_(std::move(spec)),
      slot_bytes_(static_cast<size_t>(spec_.view.out.width) * static_cast<size_t>(spec_.view.out.height) *
                  kRgbBytes),
      buffers_(std::make_shared<BufferPool>(slot_bytes_ * spec_.batch_size, spec_.spare_buffers)),
      scratch_(make_scratch(spec_.threads)),
      pool_(spec_.threads) {}

BatchEngine::~BatchEngine() {
  close();
}

std::vector<std::unique_ptr<BatchEngine::Scratch>> BatchEngine::make_scratch(size_t workers) {
  std::vector<std::unique_ptr<Scratch>> scratch(workers);
  for (auto& one : scratch) one = std::make_unique<Scratch>();
  return scratch;
}

void BatchEngine::submit(std::vector<uint64_t> keys, uint64_t epoch) {
  if (keys.empty() || keys.size() > spec_.batch_size) {
    throw Error(ErrorCode::kBadArgument, "A batch of " + std::to_string(keys.size()) +
                                             " samples; this engine takes 1.." +
                                             std::to_string(spec_.batch_size));
  }
  const size_t count = keys.size();
  auto batch = std::make_shared<Pending>();
  batch->batch.labels.assign(count, -1);
  batch->batch.keys = std::move(keys);
  batch->epoch = epoch;
  batch->left = count;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed");
    pending_.push_back(batch);
  }
  pool_.submit(count, [this, batch](size_t index, size_t worker) { load(*batch, index, worker); });
}

std::optional<Batch> BatchEngine::next(std::chrono::milliseconds patience) {
  std::shared_ptr<Pending> batch;
  {
    std::unique_lock lock(mutex_);
    const auto ready = [this] { return closed_ || pending_.empty() || pending_.front()->done; };
    if (!ready_.wait_for(lock, patience, ready)) return std::nullopt;
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed");
    if (pending_.empty()) throw Error(ErrorCode::kClosed, "No batch is queued");
    batch = std::move(pending_.front());
    pending_.pop_front();
  }
  // Taken out of the batch, which a thread may be the last to let go of: the error belongs to this thread
  // alone.
  if (const std::exception_ptr error = std::exchange(batch->error, nullptr)) std::rethrow_exception(error);
  return std::move(batch->batch);
}

void BatchEngine::drop_pending() {
  std::deque<std::shared_ptr<Pending>> dropped;
  const std::lock_guard lock(mutex_);
  for (const auto& batch : pending_) batch->dropped = true;
  dropped.swap(pending_);
}

void BatchEngine::close() {
  {
    const std::lock_guard lock(mutex_);
    closed_ = true;
  }
  ready_.notify_all();
  pool_.close();
  drop_pending();
}

void BatchEngine::load(Pending& batch, size_t index, size_t worker) {
  if (!batch.dropped) {
    try {
      load_sample(batch, index, *scratch_[worker]);
    } catch (...) {  // a thread root: whatever it is, the consumer gets it
      const std::lock_guard lock(batch.error_mutex);
      if (index < batch.error_index) {
        batch.error_index = index;
        batch.error = std::current_exception();
      }
    }
  }
  if (--batch.left != 0) return;
  {
    const std::lock_guard lock(mutex_);
    batch.done = true;
  }
  ready_.notify_one();
}

void BatchEngine::load_sample(Pending& batch, size_t index, Scratch& scratch) {
  std::call_once(batch.allocated, [&] { batch.batch.images = buffers_->take(); });
  const uint64_t key = batch.batch.keys[index];
  const auto payload = records_->read(key, spec_.check, scratch.record);
  std::string source;
  try {
    const Sample sample = find_sample(payload, spec_, source);
    batch.batch.labels[index] = sample.label;
    const size_t stride = static_cast<size_t>(spec_.view.out.width) * kRgbBytes;
    scratch.decoder.decode(sample.image, spec_.view, SampleRandom(spec_.seed, batch.epoch, key),
                           spec_.max_pixels, {batch.batch.images.get() + index * slot_bytes_, stride});
  } catch (const Error& error) {
    Where where = records_->where(key);
    where.source = source;
    throw located(error, std::move(where));
  }
}

}  // namespace stoker
