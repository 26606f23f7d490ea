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
#include "core/images/image_decoder.h"
#include "core/jpeg/header.h"
#include "core/transforms/transform_decoder.h"

namespace stoker {

// Only the sample `row` of a batch is ever written by the thread that loads it.
struct BatchEngine::Pending {
  Batch batch;
  std::shared_ptr<const std::vector<SampleId>> ids;
  uint64_t place = 0;     // of its first sample, among all that were submitted
  size_t run_length = 1;  // samples that a thread takes at a time
  std::mutex allocating;
  std::atomic<bool> allocated{false};
  std::atomic<size_t> left{0};
  std::atomic<bool> dropped{false};
  std::mutex failures_mutex;
  bool done = false;  // under the engine's mutex
};

struct BatchEngine::Scratch {
  Scratch(size_t number, DecodeMode decode, PixelMode mode, const std::vector<Shown>& planes)
      : lane(number), decoder(std::make_unique<TransformDecoder>(decode, &source.clock, mode)) {
    for (const Shown& plane : planes) {
      plane_decoders.push_back(std::make_unique<TransformDecoder>(decode, &source.clock, plane.mode));
    }
  }

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
    fields = {};
    plane_decoders.clear();
  }

  const size_t lane;  // its number: that of the thread, or behind them for replace()
  SourceScratch source;
  ConvertedImage converted;
  std::string name;  // of the sample, for messages
  std::vector<LabelledBox> boxes;
  std::vector<uint8_t> whole;                // an image that is decoded to be kept
  std::shared_ptr<const CachedSample> kept;  // the image, if it was
  std::vector<RgbSlot> slots;                // of each transform
  std::vector<std::vector<uint8_t>> pixels;  // of each transform, before they are converted
  std::optional<uint64_t> next;              // what this thread will most likely load next
  EntryPoints entries;                       // of the image
  std::unique_ptr<TransformDecoder> decoder;
  RecordFields fields;
  std::vector<std::unique_ptr<TransformDecoder>> plane_decoders;
  LookAhead::Reads reads;
};

namespace {

StoredImage pixels_of(const CachedSample& sample) {
  return {.bytes = sample.bytes,
          .encoding = sample.encoding,
          .size = sample.size,
          .order = sample.order,
          .mode = sample.mode};
}

// What a cache calls a sample, so that engines of different modes may have it in common.
uint64_t kept_number(uint64_t number, PixelMode mode) {
  constexpr int kNumberBits = 62;
  return number | uint64_t{static_cast<uint8_t>(mode)} << kNumberBits;
}

bool shows_as_stored(const EngineSpec& spec) {
  const TransformSpec& transform = spec.transforms.front();
  return spec.mode == PixelMode::kRgb && spec.transforms.size() == 1 &&
         transform.kind == TransformKind::kExact && transform.hflip == 0.0 && !transform.jitter.on() &&
         spec.format.plain() && !spec.boxes.wanted && spec.fields.planes.empty() && !spec.decoded;
}

// Bytes of one image of a batch. Throws kBadArgument where batches of it are larger than memory can be.
size_t slot_bytes(const TransformSpec& transform, PixelMode mode, const PixelFormat& format,
                  size_t batch_size) {
  check_transform(transform);
  check_mode(transform, mode);
  const size_t bytes = static_cast<size_t>(transform.out.width) * static_cast<size_t>(transform.out.height) *
                       channels_of(mode) * format.value_bytes();
  if (batch_size <= static_cast<size_t>(std::numeric_limits<ptrdiff_t>::max()) / bytes) return bytes;
  throw Error(ErrorCode::kBadArgument, "A batch of " + std::to_string(batch_size) + " images of " +
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
  for (const TransformSpec& transform : spec.transforms) {
    static_cast<void>(slot_bytes(transform, spec.mode, spec.format, spec.batch_size));
  }
  check_fields(spec.fields);
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
      writer_(spec_.format, spec_.mode),
      copies_(shows_as_stored(spec_)),
      image_(shown(spec_.transforms, spec_.mode, spec_.format)),
      planes_(shown_planes()),
      entries_(std::make_unique<EntryTable>(source_->size())),
      scratch_(make_scratch()),
      look_ahead_([this](SampleId id) { return is_kept(id) ? 0 : source_->start_reading(id.number); }),
      pool_(spec_.threads) {}

BatchEngine::Shown BatchEngine::shown(std::vector<TransformSpec> transforms, PixelMode mode,
                                      const PixelFormat& format) const {
  Shown made{.mode = mode, .plain = format.plain(), .transforms = std::move(transforms)};
  for (const TransformSpec& transform : made.transforms) {
    made.slot_bytes.push_back(slot_bytes(transform, mode, format, spec_.batch_size));
    made.buffers.push_back(
        std::make_shared<BufferPool>(made.slot_bytes.back() * spec_.batch_size, spec_.spare_buffers));
  }
  return made;
}

std::vector<BatchEngine::Shown> BatchEngine::shown_planes() const {
  std::vector<Shown> planes;
  for (const FieldPlane& plane : spec_.fields.planes) {
    std::vector<TransformSpec> transforms = spec_.transforms;
    if (!plane.is_mask()) {
      planes.push_back(shown(std::move(transforms), spec_.mode, spec_.format));
      continue;
    }
    for (TransformSpec& transform : transforms) {
      transform.filter = Filter::kNearest;
      transform.jitter = {};
    }
    const bool deep = plane.mask_bits > 8;
    planes.push_back(shown(std::move(transforms), deep ? PixelMode::kI16 : PixelMode::kL,
                           {.type = deep ? PixelType::kUint16 : PixelType::kUint8}));
  }
  return planes;
}

BatchEngine::~BatchEngine() {
  close();
}

std::vector<std::unique_ptr<BatchEngine::Scratch>> BatchEngine::make_scratch() {
  std::vector<std::unique_ptr<Scratch>> scratch(spec_.threads + 1);
  for (size_t i = 0; i < scratch.size(); ++i) {
    scratch[i] = std::make_unique<Scratch>(i, spec_.decode, spec_.mode, planes_);
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
  auto ids = std::make_shared<std::vector<SampleId>>();
  ids->reserve(count);
  made.indices.reserve(count);
  made.streams.reserve(count);
  made.epoch = request.epoch;
  made.engine = id_;
  for (const SampleRequest& sample : request.samples) {
    ids->push_back(sample.id);
    made.indices.push_back(sample.index);
    made.streams.push_back(sample.stream);
  }
  batch->ids = std::move(ids);
  made.seeds.resize(count);
  if (spec_.boxes.wanted)
    made.boxes.assign(spec_.transforms.size(), std::vector<std::vector<TransformedBox>>(count));
  made.columns.assign(spec_.fields.columns.size(), BatchColumn(count, scratch_.size()));
  made.failures.reserve(count);  // so that a thread without memory can still record its failure
  batch->left = count;
  batch->run_length = run_length(count);
  {
    const std::lock_guard lock(mutex_);
    if (closed_) throw Error(ErrorCode::kClosed, "The loader is closed; make a new one");
    batch->place = look_ahead_.add(batch->ids);
    made.number = submitted_;
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
  look_ahead_.pass(batch->place + batch->ids->size());
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
  spec_.convert = nullptr;  // not called any more, and what it holds may hold this engine
  for (const auto& scratch : scratch_) scratch->release();
}

// Copying a sample takes so short that what threads tell each other would be felt: where one takes up to
// kMostRun at a time they write to different lines of the cache, and a thread knows what it copies next.
// Samples that are decoded, or waited for, are taken one by one.
size_t BatchEngine::run_length(size_t count) const {
  constexpr size_t kMostRun = 16, kLeastRuns = 4;  // of a thread, so that all have as much to do
  if (!copies_ || spec_.ahead || look_ahead_.on()) return 1;
  return std::clamp(count / (kLeastRuns * spec_.threads), size_t{1}, kMostRun);
}

void BatchEngine::load_run(Pending& batch, size_t begin, size_t end, size_t worker) {
  Scratch& scratch = *scratch_[worker];
  for (size_t row = begin; row < end; ++row) {
    if (batch.dropped) break;
    const size_t next = row + 1 < end ? row + 1 : end + (spec_.threads - 1) * batch.run_length;
    scratch.next = next < batch.ids->size() ? std::optional((*batch.ids)[next].number) : std::nullopt;
    load(batch, row, scratch);
  }
  if ((batch.left -= end - begin) != 0) return;
  {
    const std::lock_guard lock(mutex_);
    batch.done = true;
  }
  ready_.notify_one();
}

void BatchEngine::load(Pending& batch, size_t row, Scratch& scratch) {
  batch.batch.seeds[row] = SampleRandom(spec_.seed, batch.batch.epoch, batch.batch.streams[row]).user_seed();
  try {
    if (!batch.allocated) allocate(batch);
    StageClock& clock = scratch.source.clock;
    const uint64_t place = batch.place + row;
    clock.begin(batch.batch.number, batch.batch.indices[row], look_ahead_.begin(place, scratch.reads));
    load_sample(batch.batch, row, (*batch.ids)[row], scratch);
    if (clock.read_ns() != 0) look_ahead_.end(place, scratch.reads, clock.read_ns(), clock.read_bytes());
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
  const auto take = [](const Shown& shown) {
    Buffers taken;
    for (const auto& buffers : shown.buffers) taken.push_back(buffers->take());
    return taken;
  };
  Buffers images = take(image_);
  std::vector<Buffers> planes;
  for (const Shown& plane : planes_) planes.push_back(take(plane));
  batch.batch.images = std::move(images);
  batch.batch.planes = std::move(planes);
  batch.allocated = true;
}

void BatchEngine::fail(Pending& batch, size_t row, const std::exception_ptr& error) {
  const std::lock_guard lock(batch.failures_mutex);
  batch.batch.failures.push_back({row, error});
}

RemotePlace BatchEngine::remote_place(SampleId id) const {
  return is_kept(id) ? RemotePlace{} : source_->remote_place(id.number);
}

bool BatchEngine::is_kept(SampleId id) const {
  return shows_kept(id) && spec_.decoded->contains(kept_number(id.number, spec_.mode));
}

bool BatchEngine::shows_kept(SampleId id) const {
  return spec_.decoded && id.object == kWholeImage && !spec_.boxes.wanted && !spec_.fields.wanted();
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
    if (copies_ && copy_sample(batch, row, id, scratch)) return;
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
  scratch.source.coming = {};
  if (scratch.next) source_->expect(*scratch.next, scratch.source);
  SourceSample sample;
  try {
    sample = describe(id, fetched.bytes, scratch);
  } catch (const Error&) {
    scratch.source.pixels = {};
    return false;  // bytes that are not checked may say anything
  }
  scratch.source.clock.mark(Stage::kParse);
  const StoredImage& image = sample.image;
  if (image.encoding != ImageEncoding::kRaw || image.order != TensorOrder::kHwc) {
    copies_ = false;
    return false;
  }
  if (image.size != spec_.transforms.front().out) return false;
  if (image.bytes.size() / kRgbBytes > spec_.max_pixels) return false;
  uint8_t* const slot = batch.images[0].get() + row * image_.slot_bytes[0];
  const bool good = fetched.copy(image.bytes, slot, scratch.source.pixels, scratch.source.coming.mapped);
  scratch.source.clock.mark(Stage::kWrite);
  if (!good) return false;
  batch.labels[row] = sample.label;
  keep_columns(batch, row, scratch);
  return true;
}

SourceSample BatchEngine::describe(SampleId id, std::span<const uint8_t> bytes, Scratch& scratch) const {
  if (!spec_.fields.wanted()) return source_->describe(id, bytes, scratch.source, scratch.name);
  return source_->describe_with_fields(id, bytes, spec_.fields, scratch.source, scratch.name, scratch.fields);
}

EntryPoints* BatchEngine::entries_of(uint64_t number, std::span<const uint8_t> bytes,
                                     Scratch& scratch) const {
  scratch.entries = entries_->of(number, bytes.size(), crc_of(bytes, scratch.source));
  return &scratch.entries;
}

StoredImage BatchEngine::find_image(Batch& batch, size_t row, SampleId id, Scratch& scratch) const {
  scratch.kept = spec_.decoded ? spec_.decoded->find(kept_number(id.number, spec_.mode)) : nullptr;
  if (scratch.kept && shows_kept(id)) {
    batch.labels[row] = scratch.kept->label;
    return pixels_of(*scratch.kept);
  }
  scratch.source.crc.reset();
  const auto bytes = source_->fetch(id.number, scratch.source);
  SourceSample sample = describe(id, bytes, scratch);
  if (sample.image.encoding == ImageEncoding::kFile && begins_as_jpeg(sample.image.bytes)) {
    sample.image.entries = entries_of(id.number, bytes, scratch);
  }
  scratch.source.clock.mark(Stage::kParse);
  batch.labels[row] = sample.label;
  if (spec_.boxes.wanted) {
    source_->append_boxes(id.number, bytes, sample.label, scratch.source, scratch.boxes);
  }
  keep_columns(batch, row, scratch);
  if (scratch.kept) {
    StoredImage image = pixels_of(*scratch.kept);
    image.object = sample.image.object;
    return image;
  }
  if (sample.image.encoding == ImageEncoding::kRaw) return sample.image;
  return keep(convert(sample.image, scratch), id.number, sample.label, scratch);
}

StoredImage BatchEngine::convert(StoredImage image, Scratch& scratch) const {
  if (!spec_.convert || image.encoding != ImageEncoding::kFile) return image;
  if (format_of(image.bytes) != ImageFormat::kOther) return image;
  scratch.converted = spec_.convert(image.bytes);
  scratch.source.clock.mark(Stage::kConvert);
  image.encoding = ImageEncoding::kRaw;
  image.bytes = scratch.converted.pixels;
  image.size = scratch.converted.size;
  image.order = TensorOrder::kHwc;
  image.mode = spec_.mode;
  return image;
}

StoredImage BatchEngine::keep(StoredImage image, uint64_t number, int64_t label, Scratch& scratch) const {
  if (!spec_.decoded || spec_.decoded->full()) return image;
  if (image.encoding == ImageEncoding::kFile) {
    try {
      image.size = scratch.decoder->decode_whole(image.bytes, spec_.max_pixels, scratch.whole);
    } catch (const Error&) {
      return image;  // whether what is broken matters is up to the transforms, with a cache as without
    }
    scratch.source.clock.mark(Stage::kDecode);
    image.encoding = ImageEncoding::kRaw;
    image.bytes = scratch.whole;
    image.mode = spec_.mode;
  }
  spec_.decoded->offer(kept_number(number, spec_.mode), image, label, scratch.name);
  return image;
}

void BatchEngine::keep_columns(Batch& batch, size_t row, const Scratch& scratch) {
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    batch.columns[i].set(row, scratch.lane, scratch.fields.columns[i]);
  }
}

void BatchEngine::show(Batch& batch, size_t row, const StoredImage& image, Scratch& scratch) const {
  choose_slots(image_, batch.images, row, scratch);
  const SampleRandom random(spec_.seed, batch.epoch, batch.streams[row]);
  scratch.decoder->decode(image, image_.transforms, random, spec_.max_pixels, scratch.slots);
  write(image_, batch.images, row, scratch);
  for (size_t i = 0; i < planes_.size(); ++i) show_plane(batch, row, i, random, scratch);
  if (!spec_.boxes.wanted) return;
  const auto plans = scratch.decoder->plans();
  for (size_t i = 0; i < plans.size(); ++i) {
    batch.boxes[i][row].clear();
    transform_boxes(plans[i], scratch.decoder->size(), scratch.boxes, spec_.boxes.min_visible,
                    batch.boxes[i][row]);
  }
}

void BatchEngine::show_plane(Batch& batch, size_t row, size_t plane, const SampleRandom& random,
                             Scratch& scratch) const {
  const Shown& shown = planes_[plane];
  const FieldPlane& field = spec_.fields.planes[plane];
  try {
    StoredImage image{.bytes = scratch.fields.planes[plane]};
    if (!field.is_mask()) image = convert(image, scratch);
    choose_slots(shown, batch.planes[plane], row, scratch);
    scratch.plane_decoders[plane]->decode_as(*scratch.decoder, image, shown.transforms, random,
                                             spec_.max_pixels, scratch.slots);
    write(shown, batch.planes[plane], row, scratch);
  } catch (const Error& error) {
    throw Error(error.code(), "feature '" + field.key + "': " + error.what(), error.where(),
                error.system_errno());
  }
}

void BatchEngine::choose_slots(const Shown& shown, const Buffers& images, size_t row, Scratch& scratch) {
  scratch.slots.clear();
  scratch.pixels.resize(shown.transforms.size());
  for (size_t i = 0; i < shown.transforms.size(); ++i) {
    const Extent out = shown.transforms[i].out;
    const size_t stride = static_cast<size_t>(out.width) * pixel_bytes(shown.mode);
    if (shown.plain) {
      scratch.slots.push_back({images[i].get() + row * shown.slot_bytes[i], stride});
    } else {
      scratch.pixels[i].resize(stride * static_cast<size_t>(out.height));
      scratch.slots.push_back({scratch.pixels[i].data(), stride});
    }
  }
}

void BatchEngine::write(const Shown& shown, const Buffers& images, size_t row, Scratch& scratch) const {
  if (shown.plain) return;
  for (size_t i = 0; i < shown.transforms.size(); ++i) {
    writer_.write(scratch.slots[i], shown.transforms[i].out, images[i].get() + row * shown.slot_bytes[i]);
  }
  scratch.source.clock.mark(Stage::kWrite);
}

}  // namespace stoker
