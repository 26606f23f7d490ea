#include "core/engine/sample_loader.h"

#include <limits>
#include <string>
#include <utility>

#include "core/base/errors.h"
#include "core/images/image_decoder.h"
#include "core/jpeg/header.h"
#include "core/threads/pool.h"

namespace stoker {
namespace {

StoredImage pixels_of(const CachedSample& sample) {
  return {.bytes = sample.bytes,
          .encoding = sample.encoding,
          .size = sample.size,
          .order = sample.order,
          .mode = sample.mode,
          .orientation = sample.orientation};
}

// The key of a sample in a cache, so that engines of different modes, and engines that turn images or not,
// can share the cache.
uint64_t cache_number(uint64_t number, const EngineSpec& spec) {
  constexpr int kNumberBits = 61;
  const uint64_t kind = uint64_t{static_cast<uint8_t>(spec.mode)} << 1 | (spec.turns ? 1 : 0);
  return number | kind << kNumberBits;
}

bool is_copied_raw(const EngineSpec& spec) {
  return spec.mode == PixelMode::kRgb && spec.transforms.size() == 1 && spec.transforms.front().copies() &&
         spec.format.plain() && !spec.boxes.wanted && spec.fields.planes.empty() && !spec.decoded;
}

// Bytes of one image of a batch. Throws kBadArgument where batches of it are larger than memory can be.
size_t slot_bytes(const TransformSpec& transform, PixelMode mode, const PixelFormat& format,
                  size_t batch_size) {
  transform.check_mode(mode);
  const size_t bytes = static_cast<size_t>(transform.out().width) *
                       static_cast<size_t>(transform.out().height) * channels_of(mode) * format.value_bytes();
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

}  // namespace

SampleScratch::SampleScratch(size_t number, const EngineSpec& spec, const std::vector<PixelMode>& plane_modes)
    : lane(number), decoder(std::make_unique<TransformDecoder>(spec.decode, &source.clock, spec.mode)) {
  for (const PixelMode mode : plane_modes) {
    plane_decoders.push_back(std::make_unique<TransformDecoder>(spec.decode, &source.clock, mode));
  }
}

void SampleScratch::release() {
  source.held = nullptr;
  source.bytes = {};
  converted = {};
  boxes = {};
  whole = {};
  cached = nullptr;
  pixels = {};
  decoder = nullptr;
  fields = {};
  plane_decoders.clear();
}

SampleLoader::SampleLoader(std::shared_ptr<const SampleSource> source, EngineSpec spec)
    : source_(std::move(source)),
      spec_(checked(std::move(spec))),
      writer_(spec_.format, spec_.mode),
      copies_raw_(is_copied_raw(spec_)),
      image_(output_of(spec_.transforms, spec_.mode, spec_.format)),
      planes_(plane_outputs()),
      entries_(std::make_unique<EntryTable>(source_->size())) {}

std::unique_ptr<SampleScratch> SampleLoader::make_scratch(size_t lane) const {
  std::vector<PixelMode> plane_modes;
  for (const ImageOutput& plane : planes_) plane_modes.push_back(plane.mode);
  auto scratch = std::make_unique<SampleScratch>(lane, spec_, plane_modes);
  scratch->source.remote.ahead = spec_.ahead.get();
  return scratch;
}

void SampleLoader::allocate(Batch& batch) const {
  const auto take = [](const ImageOutput& output) {
    Buffers taken;
    for (const auto& buffers : output.buffers) taken.push_back(buffers->take());
    return taken;
  };
  Buffers images = take(image_);
  std::vector<Buffers> planes;
  for (const ImageOutput& plane : planes_) planes.push_back(take(plane));
  batch.images = std::move(images);
  batch.planes = std::move(planes);
}

SampleLoader::ImageOutput SampleLoader::output_of(std::vector<TransformSpec> transforms, PixelMode mode,
                                                  const PixelFormat& format) const {
  ImageOutput output{.mode = mode, .converted = !format.plain(), .transforms = std::move(transforms)};
  for (const TransformSpec& transform : output.transforms) {
    output.slot_bytes.push_back(slot_bytes(transform, mode, format, spec_.batch_size));
    output.buffers.push_back(
        std::make_shared<BufferPool>(output.slot_bytes.back() * spec_.batch_size, spec_.spare_buffers));
  }
  return output;
}

std::vector<SampleLoader::ImageOutput> SampleLoader::plane_outputs() const {
  std::vector<ImageOutput> planes;
  for (const FieldPlane& plane : spec_.fields.planes) {
    std::vector<TransformSpec> transforms = spec_.transforms;
    if (!plane.is_mask()) {
      planes.push_back(output_of(std::move(transforms), spec_.mode, spec_.format));
      continue;
    }
    for (TransformSpec& transform : transforms) transform = transform.for_masks();
    const bool deep = plane.mask_bits > 8;
    planes.push_back(output_of(std::move(transforms), deep ? PixelMode::kI16 : PixelMode::kL,
                               {.type = deep ? PixelType::kUint16 : PixelType::kUint8}));
  }
  return planes;
}

bool SampleLoader::is_cached(SampleId id) const {
  return needs_only_pixels(id) && spec_.decoded->contains(cache_number(id.number, spec_));
}

bool SampleLoader::needs_only_pixels(SampleId id) const {
  return spec_.decoded && id.object == kWholeImage && !spec_.boxes.wanted && !spec_.fields.wanted();
}

void SampleLoader::load(Batch& batch, size_t row, SampleId id, SampleScratch& scratch) const {
  // Other threads may wait for the budget that these bytes take while this thread waits for those threads.
  const auto release = [](SourceScratch* source) {
    source->remote.release();
    source->clock.end();
  };
  const std::unique_ptr<SourceScratch, decltype(release)> held(&scratch.source, release);
  scratch.name.clear();
  scratch.boxes.clear();
  try {
    if (copies_raw_ && copy_raw(batch, row, id, scratch)) return;
    decode(batch, row, read(batch, row, id, scratch), scratch);
  } catch (const Error& error) {
    if (!error.where().path.empty()) throw;  // reading says where by itself
    Where where = source_->where(id.number);
    where.source = scratch.name;
    throw located(error, std::move(where));
  }
}

bool SampleLoader::copy_raw(Batch& batch, size_t row, SampleId id, SampleScratch& scratch) const {
  if (id.object != kWholeImage) return false;
  const FetchedSample fetched = source_->fetch_unchecked(id.number, scratch.source);
  scratch.source.hint = {};
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
    copies_raw_ = false;
    return false;
  }
  if (image.size != spec_.transforms.front().out()) return false;
  if (image.bytes.size() / kRgbBytes > spec_.max_pixels) return false;
  uint8_t* const slot = batch.images[0].get() + row * image_.slot_bytes[0];
  const bool good = fetched.copy(image.bytes, slot, scratch.source.pixels, scratch.source.hint.mapped);
  scratch.source.clock.mark(Stage::kWrite);
  if (!good) return false;
  batch.labels[row] = sample.label;
  set_columns(batch, row, scratch);
  return true;
}

SourceSample SampleLoader::describe(SampleId id, std::span<const uint8_t> bytes,
                                    SampleScratch& scratch) const {
  if (!spec_.fields.wanted()) return source_->describe(id, bytes, scratch.source, scratch.name);
  return source_->describe_with_fields(id, bytes, spec_.fields, scratch.source, scratch.name, scratch.fields);
}

EntryPoints* SampleLoader::entries_of(uint64_t number, std::span<const uint8_t> bytes,
                                      SampleScratch& scratch) const {
  scratch.entries = entries_->of(number, bytes.size(), crc_of(bytes, scratch.source));
  return &scratch.entries;
}

StoredImage SampleLoader::read(Batch& batch, size_t row, SampleId id, SampleScratch& scratch) const {
  scratch.cached = spec_.decoded ? spec_.decoded->find(cache_number(id.number, spec_)) : nullptr;
  if (scratch.cached && needs_only_pixels(id)) {
    batch.labels[row] = scratch.cached->label;
    return pixels_of(*scratch.cached);
  }
  scratch.source.crc.reset();
  const auto bytes = source_->fetch(id.number, scratch.source);
  SourceSample sample = describe(id, bytes, scratch);
  if (sample.image.encoding == ImageEncoding::kFile && begins_as_jpeg(sample.image.bytes)) {
    sample.image.entries = entries_of(id.number, bytes, scratch);
  }
  scratch.source.clock.mark(Stage::kParse);
  batch.labels[row] = sample.label;
  const bool shows_object = id.object != kWholeImage;
  if (spec_.boxes.wanted || shows_object) {
    source_->append_boxes(id.number, bytes, sample.label, scratch.source, scratch.boxes);
  }
  if (shows_object && static_cast<size_t>(id.object) < scratch.boxes.size()) {
    batch.labels[row] = scratch.boxes[static_cast<size_t>(id.object)].label;
  }
  set_columns(batch, row, scratch);
  if (scratch.cached) {
    StoredImage image = pixels_of(*scratch.cached);
    image.object = sample.image.object;
    return image;
  }
  if (sample.image.encoding == ImageEncoding::kRaw) return sample.image;
  return cache(convert(sample.image, scratch), id.number, sample.label, scratch);
}

StoredImage SampleLoader::convert(StoredImage image, SampleScratch& scratch) const {
  if (image.encoding != ImageEncoding::kFile) return image;
  const bool is_known = format_of(image.bytes) != ImageFormat::kOther;
  if (is_known && spec_.turns) image.orientation = Orientation(exif_orientation(image.bytes));
  if (is_known || !spec_.convert) return image;
  scratch.converted = spec_.convert(image.bytes);
  scratch.source.clock.mark(Stage::kConvert);
  image.encoding = ImageEncoding::kRaw;
  image.bytes = scratch.converted.pixels;
  image.size = scratch.converted.size;
  image.order = TensorOrder::kHwc;
  image.mode = spec_.mode;
  if (spec_.turns) image.orientation = scratch.converted.orientation;
  return image;
}

StoredImage SampleLoader::cache(StoredImage image, uint64_t number, int64_t label,
                                SampleScratch& scratch) const {
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
  spec_.decoded->offer(cache_number(number, spec_), image, label, scratch.name);
  return image;
}

void SampleLoader::set_columns(Batch& batch, size_t row, const SampleScratch& scratch) {
  for (size_t i = 0; i < batch.columns.size(); ++i) {
    batch.columns[i].set(row, scratch.lane, scratch.fields.columns[i]);
  }
}

void SampleLoader::decode(Batch& batch, size_t row, const StoredImage& image, SampleScratch& scratch) const {
  choose_slots(image_, batch.images, row, scratch);
  const SampleRandom random(spec_.seed, batch.epoch, batch.streams[row]);
  scratch.decoder->decode(image, image_.transforms, random, spec_.max_pixels, scratch.slots);
  convert_rows(image_, batch.images, row, scratch);
  for (size_t i = 0; i < planes_.size(); ++i) decode_plane(batch, row, i, image.orientation, random, scratch);
  if (!spec_.boxes.wanted) return;
  for (LabelledBox& box : scratch.boxes) box.box = image.orientation.upright(box.box);
  const auto plans = scratch.decoder->plans();
  for (size_t i = 0; i < plans.size(); ++i) {
    batch.boxes[i][row].clear();
    transform_boxes(plans[i], scratch.decoder->size(), scratch.boxes, spec_.boxes.min_visible,
                    batch.boxes[i][row]);
  }
}

void SampleLoader::decode_plane(Batch& batch, size_t row, size_t plane, Orientation orientation,
                                const SampleRandom& random, SampleScratch& scratch) const {
  const ImageOutput& output = planes_[plane];
  const FieldPlane& field = spec_.fields.planes[plane];
  try {
    StoredImage image{.bytes = scratch.fields.planes[plane], .orientation = orientation};
    if (!field.is_mask()) image = convert(image, scratch);
    choose_slots(output, batch.planes[plane], row, scratch);
    scratch.plane_decoders[plane]->decode_as(*scratch.decoder, image, output.transforms, random,
                                             spec_.max_pixels, scratch.slots);
    convert_rows(output, batch.planes[plane], row, scratch);
  } catch (const Error& error) {
    throw Error(error.code(), "feature '" + field.key + "': " + error.what(), error.where(),
                error.system_errno());
  }
}

void SampleLoader::choose_slots(const ImageOutput& output, const Buffers& images, size_t row,
                                SampleScratch& scratch) {
  scratch.slots.clear();
  scratch.pixels.resize(output.transforms.size());
  for (size_t i = 0; i < output.transforms.size(); ++i) {
    const Extent out = output.transforms[i].out();
    const size_t stride = static_cast<size_t>(out.width) * pixel_bytes(output.mode);
    if (output.converted) {
      scratch.pixels[i].resize(stride * static_cast<size_t>(out.height));
      scratch.slots.push_back({scratch.pixels[i].data(), stride});
    } else {
      scratch.slots.push_back({images[i].get() + row * output.slot_bytes[i], stride});
    }
  }
}

void SampleLoader::convert_rows(const ImageOutput& output, const Buffers& images, size_t row,
                                SampleScratch& scratch) const {
  if (!output.converted) return;
  for (size_t i = 0; i < output.transforms.size(); ++i) {
    writer_.write(scratch.slots[i], output.transforms[i].out(), images[i].get() + row * output.slot_bytes[i]);
  }
  scratch.source.clock.mark(Stage::kWrite);
}

}  // namespace stoker
