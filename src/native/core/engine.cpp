#include "core/engine.h"

#include <atomic>
#include <string>
#include <utility>

#include "core/errors.h"
#include "core/located.h"
#include "core/view_decoder.h"

namespace stoker {

// Only the sample `index` of a batch is ever written by the thread that loads it.
struct BatchEngine::Pending {
  Batch batch;
  BatchRequest request;  // without numbers, which are in the batch
  std::once_flag allocated;
  std::atomic<size_t> left{0};
  std::atomic<bool> dropped{false};
  std::mutex error_mutex;
  size_t error_index = SIZE_MAX;
  std::exception_ptr error;
  bool done = false;  // under the engine's mutex
};

struct BatchEngine::Scratch {
  SourceScratch source;
  std::vector<uint8_t> converted;
  ViewDecoder decoder;
};

namespace {

bool begins_as_jpeg(std::span<const uint8_t> image) {
  return image.size() >= 2 && image[0] == 0xff && image[1] == 0xd8;
}

}  // namespace

BatchEngine::BatchEngine(std::shared_ptr<const SampleSource> source, EngineSpec spec)
    : source_(std::move(source)),
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

void BatchEngine::submit(BatchRequest request) {
  const size_t count = request.keys.size();
  if (count == 0 || count > spec_.batch_size) {
    throw Error(ErrorCode::kBadArgument, "A batch of " + std::to_string(count) +
                                             " samples; this engine takes 1.." +
                                             std::to_string(spec_.batch_size));
  }
  if ((!request.objects.empty() && request.objects.size() != count) ||
      (!request.numbers.empty() && request.numbers.size() != count)) {
    throw Error(ErrorCode::kBadArgument, "A batch's objects and numbers must be as many as its samples");
  }
  auto batch = std::make_shared<Pending>();
  batch->batch.labels.assign(count, -1);
  batch->batch.keys = request.numbers.empty() ? request.keys : std::move(request.numbers);
  batch->request = std::move(request);
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
  spec_.convert = nullptr;  // nobody calls it any more, and what it holds may hold this engine
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
  const BatchRequest& request = batch.request;
  const SampleId id{request.keys[index], request.objects.empty() ? kWholeImage : request.objects[index]};
  const auto bytes = source_->fetch(id.number, scratch.source);
  std::string name;
  try {
    const SourceSample sample = source_->describe(id, bytes, scratch.source, name);
    batch.batch.labels[index] = sample.label;
    show(batch, index, sample.image, scratch);
  } catch (const Error& error) {
    Where where = source_->where(id.number);
    where.source = name;
    throw located(error, std::move(where));
  }
}

void BatchEngine::show(const Pending& batch, size_t index, StoredImage image, Scratch& scratch) {
  if (spec_.convert && image.encoding == ImageEncoding::kJpeg && !begins_as_jpeg(image.bytes)) {
    scratch.converted = spec_.convert(image.bytes);
    image.bytes = scratch.converted;
  }
  const size_t stride = static_cast<size_t>(spec_.view.out.width) * kRgbBytes;
  const SampleRandom random(spec_.seed, batch.request.epoch, batch.batch.keys[index]);
  scratch.decoder.decode(image, spec_.view, random, spec_.max_pixels,
                         {batch.batch.images.get() + index * slot_bytes_, stride});
}

}  // namespace stoker
