#include "core/engine/engine.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <iterator>
#include <limits>
#include <new>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/jpeg/decoder.h"
#include "core/jpeg/header.h"
#include "core/transforms/transform_decoder.h"

namespace stoker {

// Only the sample `row` of a batch is ever written by the thread that loads it.
struct BatchEngine::Pending {
  Batch batch;
  std::vector<SampleId> ids;
  std::mutex allocating;
  std::atomic<bool> allocated{false};
  std::atomic<size_t> left{0};
  std::atomic<bool> dropped{false};
  std::mutex failures_mutex;
  bool done = false;  // under the engine's mutex
};

struct BatchEngine::Scratch {
  explicit Scratch(DecodeMode decode) : decoder(std::make_unique<TransformDecoder>(decode, &source.clock)) {}

  // For good: what is left are the figures of its clock.
  void release() {
    source.held = nullptr;
    source.bytes = {};
    converted = {};
    boxes = {};
    whole = {};
    kept = nullptr;
    pixels = {};
    decoder = nullptr;
  }

  SourceScratch source;
  std::vector<uint8_t> converted;
  std::string name;  // of the sample, for messages
  std::vector<LabelledBox> boxes;
  std::vector<uint8_t> whole;                // an image that is decoded to be kept
  std::shared_ptr<const CachedSample> kept;  // the image, if it was
  std::vector<RgbSlot> slots;                // of each transform
  std::vector<std::vector<uint8_t>> pixels;  // of each transform, before they are converted
  bool copies = true;                        // until an image came that has to be decoded
  std::unique_ptr<TransformDecoder> decoder;
};

namespace {

StoredImage pixels_of(const CachedSample& sample) {
  return {.bytes = sample.bytes, .encoding = sample.encoding, .size = sample.size, .order = sample.order};
}

bool shows_as_stored(const EngineSpec& spec) {
  const TransformSpec& transform = spec.transforms.front();
  return spec.transforms.size() == 1 && transform.kind == TransformKind::kExact && transform.hflip == 0.0 &&
         !transform.jitter.on() && spec.format.plain() && !spec.boxes.wanted && !spec.decoded;
}

// Bytes of one image of a batch. Throws kBadArgument where batches of it are larger than memory can be.
size_t slot_bytes(const TransformSpec& transform, const EngineSpec& spec) {
  check_transform(transform);
  const size_t bytes = static_cast<size_t>(transform.out.width) * static_cast<size_t>(transform.out.height) *
                       kRgbBytes * spec.format.value_bytes();
  if (spec.batch_size <= static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max()) / bytes) return bytes;
  throw Error(ErrorCode::kBadArgument, "A batch of " + std::to_string(spec.batch_size) + " images of " +
                                           std::to_string(bytes) + " bytes is larger than memory can be");
}

EngineSpec checked(EngineSpec spec) {
  const auto refuse_outside = [](const char* name, size_t value, size_t most) {
    if (value >= 1 && value <= most) return;
    throw Error(ErrorCode::kBadArgument, std::string("An engine with ") + std::to_string(value) + " " + name +
                                             "; there must be 1.." + std::to_string(most));
  };
  refuse_outside("transforms", spec.transforms.size(), kMostTransforms);
  refuse_outside("threads", spec.threads, kMostThreads);
  refuse_outside("samples in a batch", spec.batch_size, std::numeric_limits<ptrdiff_t>::max());
  for (const TransformSpec& transform : spec.transforms) static_cast<void>(slot_bytes(transform, spec));
  const double visible = spec.boxes.min_visible;
  if (!(visible >= 0.0 && visible <= 1.0)) {
    throw Error(ErrorCode::kBadArgument, "Boxes of which " + std::to_string(visible) +
                                             " must be visible; it must be a share from 0 to 1");
  }
  return spec;
}

std::atomic<uint64_t> engines_made{0};

}  // namespace

BatchEngine::BatchEngine(std::shared_ptr<const SampleSource> source, EngineSpec spec)
    : source_(std::move(source)),
      spec_(checked(std::move(spec))),
      id_(++engines_made),
      trace_(spec_.threads + 2),
      consumer_(trace_, static_cast<uint16_t>(spec_.threads + 1)),
      writer_(spec_.format),
      copies_(shows_as_stored(spec_)),
      scratch_(make_scratch()),
      pool_(spec_.threads) {
  for (const TransformSpec& transform : spec_.transforms) {
    slot_bytes_.push_back(slot_bytes(transform, spec_));
    buffers_.push_back(
        std::make_shared<BufferPool>(slot_bytes_.back() * spec_.batch_size, spec_.spare_buffers));
  }
}

BatchEngine::~BatchEngine() {
  close();
}

std::vector<std::unique_ptr<BatchEngine::Scratch>> BatchEngine::make_scratch() {
  std::vector<std::unique_ptr<Scratch>> scratch(spec_.threads + 1);
  for (size_t i = 0; i < scratch.size(); ++i) {
    scratch[i] = std::make_unique<Scratch>(spec_.decode);
    scratch[i]->source.remote.ahead = spec_.ahead.get();
    scratch[i]->source.clock.attach(&trace_, static_cast<uint16_t>(i));
  }
  scratch.back()->source.remote.out_of_turn = true;  // what stands in for others is in no schedule
  return scratch;
}

void BatchEngine::submit(const BatchRequest& request) {
  const size_t count = request.samples.size();
  if (count == 0 || count > spec_.batch_size) {
    throw Error(ErrorCode::kBadArgument, "A batch of " + std::to_string(count) +
                                             " samples; this engine takes 1.." +
                                             std::to_string(spec_.batch_size));
  }
  auto batch = std::make_shared<Pending>();
  Batch& made = batch->batch;
  made.labels.assign(count, -1);
  batch->ids.reserve(count);
  made.indices.reserve(count);
  made.streams.reserve(count);
  made.epoch = request.epoch;
  made.engine = id_;
  for (const SampleRequest& sample : request.samples) {
    batch->ids.push_back(sample.id);
    made.indices.push_back(sample.index);
    made.streams.push_back(sample.stream);
  }
  made.seeds.resize(count);
  if (spec_.boxes.wanted)
    made.boxes.assign(spec_.transforms.size(), std::vector<std::vector<TransformedBox>>(count));
  made.failures.reserve(count);  // so that a thread without memory can still record its failure
  batch->left = count;
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed");
    made.number = submitted_;
    pending_.push_back(batch);
    ++submitted_;
  }
  try {
    pool_.submit(count, [this, batch](size_t row, size_t worker) { load(*batch, row, worker); });
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
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed");
    if (pending_.empty()) throw Error(ErrorCode::kClosed, "No batch is queued");
    batch = std::move(pending_.front());
    pending_.pop_front();
  }
  // Taken out of what a worker may be the last to release: the errors belong to this thread alone.
  Batch made = std::move(batch->batch);
  std::ranges::sort(made.failures, {}, &SampleFailure::row);
  return made;
}

void BatchEngine::drop_pending() {
  std::list<std::shared_ptr<Pending>> dropped;
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
  const std::lock_guard replacing(replace_mutex_);
  spec_.convert = nullptr;  // not called any more, and what it holds may hold this engine
  for (const auto& scratch : scratch_) scratch->release();
}

void BatchEngine::load(Pending& batch, size_t row, size_t worker) {
  if (!batch.dropped) {
    batch.batch.seeds[row] =
        SampleRandom(spec_.seed, batch.batch.epoch, batch.batch.streams[row]).user_seed();
    try {
      if (!batch.allocated) allocate(batch);
      Scratch& scratch = *scratch_[worker];
      scratch.source.clock.begin(batch.batch.number, batch.batch.indices[row]);
      load_sample(batch.batch, row, batch.ids[row], scratch);
    } catch (const std::bad_alloc&) {
      fail(batch, row, no_memory_);
    } catch (...) {  // a thread root: whatever it is, the consumer gets it
      fail(batch, row, std::current_exception());
    }
  }
  if (--batch.left != 0) return;
  {
    const std::lock_guard lock(mutex_);
    batch.done = true;
  }
  ready_.notify_one();
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
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed");
  }
  scratch_.back()->source.clock.begin(batch.number, index);
  load_sample(batch, row, id, *scratch_.back());
  batch.indices[row] = index;
}

void BatchEngine::time_stages(bool on) {
  for (const auto& scratch : scratch_) scratch->source.clock.set_on(on);
}

size_t BatchEngine::ready() {
  const std::lock_guard lock(mutex_);
  const auto waited_for = std::ranges::find(pending_, false, [](const auto& batch) { return batch->done; });
  return static_cast<size_t>(std::distance(pending_.begin(), waited_for));
}

EngineTotals BatchEngine::totals() const {
  EngineTotals totals{
      .threads = spec_.threads, .stages = {}, .workers = pool_.totals(), .consumer = consumer_.totals()};
  for (const auto& scratch : scratch_) totals.stages += scratch->source.clock.totals();
  return totals;
}

// Not with std::call_once: an exception on its way out of that passes through the C library, which ends the
// process where there is no memory (glibc), or hangs (glibc before 2.34).
void BatchEngine::allocate(Pending& batch) const {
  const std::lock_guard lock(batch.allocating);
  if (batch.allocated) return;
  std::vector<std::shared_ptr<uint8_t[]>> taken;
  for (const auto& buffers : buffers_) taken.push_back(buffers->take());
  batch.batch.images = std::move(taken);
  batch.allocated = true;
}

void BatchEngine::fail(Pending& batch, size_t row, const std::exception_ptr& error) {
  const std::lock_guard lock(batch.failures_mutex);
  batch.batch.failures.push_back({row, error});
}

RemotePlace BatchEngine::remote_place(SampleId id) const {
  const bool decoded = spec_.decoded && id.object == kWholeImage && !spec_.boxes.wanted;
  if (decoded && spec_.decoded->contains(id.number)) return {};
  return source_->remote_place(id.number);
}

void BatchEngine::load_sample(Batch& batch, size_t row, SampleId id, Scratch& scratch) const {
  // Other threads may wait for the budget that these bytes take, and this thread for them.
  const auto release = [](SourceScratch* source) {
    source->remote.release();
    source->clock.end();
  };
  const std::unique_ptr<SourceScratch, decltype(release)> held(&scratch.source, release);
  scratch.name.clear();
  scratch.boxes.clear();
  try {
    if (copies_ && scratch.copies && copy_sample(batch, row, id, scratch)) return;
    show(batch, row, find_image(batch, row, id, scratch), scratch);
  } catch (const Error& error) {
    if (!error.where().path.empty()) throw;  // reading says where by itself
    Where where = source_->where(id.number);
    where.source = scratch.name;
    throw located(error, std::move(where));
  }
}

bool BatchEngine::copy_sample(Batch& batch, size_t row, SampleId id, Scratch& scratch) const {
  if (id.object != kWholeImage) return false;
  const FetchedSample fetched = source_->fetch_unchecked(id.number, scratch.source);
  SourceSample sample;
  try {
    sample = source_->describe(id, fetched.bytes, scratch.source, scratch.name);
  } catch (const Error&) {
    return false;  // bytes that are not checked may say anything
  }
  scratch.source.clock.mark(Stage::kParse);
  const StoredImage& image = sample.image;
  scratch.copies = image.encoding == ImageEncoding::kRaw && image.order == TensorOrder::kHwc;
  if (!scratch.copies || image.size != spec_.transforms.front().out) return false;
  if (image.bytes.size() / kRgbBytes > spec_.max_pixels) return false;
  const bool good = fetched.copy(image.bytes, batch.images[0].get() + row * slot_bytes_[0]);
  scratch.source.clock.mark(Stage::kWrite);
  if (!good) return false;
  batch.labels[row] = sample.label;
  return true;
}

StoredImage BatchEngine::find_image(Batch& batch, size_t row, SampleId id, Scratch& scratch) const {
  scratch.kept = spec_.decoded ? spec_.decoded->find(id.number) : nullptr;
  if (scratch.kept && id.object == kWholeImage && !spec_.boxes.wanted) {
    batch.labels[row] = scratch.kept->label;
    return pixels_of(*scratch.kept);
  }
  const auto bytes = source_->fetch(id.number, scratch.source);
  const SourceSample sample = source_->describe(id, bytes, scratch.source, scratch.name);
  scratch.source.clock.mark(Stage::kParse);
  batch.labels[row] = sample.label;
  if (spec_.boxes.wanted) {
    source_->append_boxes(id.number, bytes, sample.label, scratch.source, scratch.boxes);
  }
  if (scratch.kept) {
    StoredImage image = pixels_of(*scratch.kept);
    image.object = sample.image.object;
    return image;
  }
  return keep(convert(sample.image, scratch), id.number, sample.label, scratch);
}

StoredImage BatchEngine::convert(StoredImage image, Scratch& scratch) const {
  if (spec_.convert && image.encoding == ImageEncoding::kJpeg && !begins_as_jpeg(image.bytes)) {
    scratch.converted = spec_.convert(image.bytes);
    scratch.source.clock.mark(Stage::kConvert);
    image.bytes = scratch.converted;
  }
  return image;
}

StoredImage BatchEngine::keep(StoredImage image, uint64_t number, int64_t label, Scratch& scratch) const {
  if (!spec_.decoded || spec_.decoded->full() || image.encoding != ImageEncoding::kJpeg) return image;
  try {
    image.size = scratch.decoder->decode_whole(image.bytes, spec_.max_pixels, scratch.whole);
  } catch (const Error&) {
    return image;  // whether what is broken matters is up to the transforms, with a cache as without
  }
  scratch.source.clock.mark(Stage::kDecode);
  image.encoding = ImageEncoding::kRaw;
  image.bytes = scratch.whole;
  spec_.decoded->offer(number, image, label, scratch.name);
  return image;
}

void BatchEngine::show(Batch& batch, size_t row, const StoredImage& image, Scratch& scratch) const {
  choose_slots(batch, row, scratch);
  const SampleRandom random(spec_.seed, batch.epoch, batch.streams[row]);
  scratch.decoder->decode(image, spec_.transforms, random, spec_.max_pixels, scratch.slots);
  for (size_t i = 0; !spec_.format.plain() && i < spec_.transforms.size(); ++i) {
    writer_.write(scratch.slots[i], spec_.transforms[i].out, batch.images[i].get() + row * slot_bytes_[i]);
  }
  if (!spec_.format.plain()) scratch.source.clock.mark(Stage::kWrite);
  if (!spec_.boxes.wanted) return;
  const auto plans = scratch.decoder->plans();
  for (size_t i = 0; i < plans.size(); ++i) {
    batch.boxes[i][row].clear();
    transform_boxes(plans[i], scratch.decoder->size(), scratch.boxes, spec_.boxes.min_visible,
                    batch.boxes[i][row]);
  }
}

void BatchEngine::choose_slots(const Batch& batch, size_t row, Scratch& scratch) const {
  scratch.slots.clear();
  scratch.pixels.resize(spec_.transforms.size());
  for (size_t i = 0; i < spec_.transforms.size(); ++i) {
    const Extent out = spec_.transforms[i].out;
    const size_t stride = static_cast<size_t>(out.width) * kRgbBytes;
    if (spec_.format.plain()) {
      scratch.slots.push_back({batch.images[i].get() + row * slot_bytes_[i], stride});
    } else {
      scratch.pixels[i].resize(stride * static_cast<size_t>(out.height));
      scratch.slots.push_back({scratch.pixels[i].data(), stride});
    }
  }
}

}  // namespace stoker
