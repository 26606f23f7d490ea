// Loads one sample into its row of a batch: reads it, decodes its images, and writes pixels, label, boxes and
// fields.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/color/pixel_format.h"
#include "core/engine/batch.h"
#include "core/engine/engine_spec.h"
#include "core/jpeg/entry_points.h"
#include "core/sources/memory_cache.h"
#include "core/sources/record_fields.h"
#include "core/sources/sample_source.h"
#include "core/threads/buffer_pool.h"
#include "core/transforms/transform_decoder.h"

namespace stoker {

// Memory that one thread keeps from sample to sample.
struct SampleScratch {
  // `plane_modes`: of each plane of the fields.
  SampleScratch(size_t number, const EngineSpec& spec, const std::vector<PixelMode>& plane_modes);

  // Frees the memory for good; only the figures of its clock stay.
  void release();

  const size_t lane;  // its number: that of the thread, or behind them for replacements
  SourceScratch source;
  ConvertedImage converted;
  std::string name;  // of the sample, for messages
  std::vector<LabelledBox> boxes;
  std::vector<uint8_t> whole;                  // an image that is decoded to be cached
  std::shared_ptr<const CachedSample> cached;  // the image, if it was
  std::vector<RgbSlot> slots;                  // of each transform
  std::vector<std::vector<uint8_t>> pixels;    // of each transform, before they are converted
  std::optional<uint64_t> next;                // what this thread will most likely load next
  EntryPoints entries;                         // of the image
  std::unique_ptr<TransformDecoder> decoder;
  RecordFields fields;
  std::vector<std::unique_ptr<TransformDecoder>> plane_decoders;
};

// May be used by any number of threads, each with a scratch of its own, for different rows.
class SampleLoader {
 public:
  // Throws kBadArgument for a specification that cannot be carried out, such as batches larger than memory
  // can be.
  SampleLoader(std::shared_ptr<const SampleSource> source, EngineSpec spec);

  const EngineSpec& spec() const { return spec_; }
  const SampleSource& source() const { return *source_; }

  std::unique_ptr<SampleScratch> make_scratch(size_t lane) const;

  // Takes the buffers of the pixels of a batch, all or none.
  void allocate(Batch& batch) const;

  // Throws what is wrong with the sample, and where it lies.
  void load(Batch& batch, size_t row, SampleId id, SampleScratch& scratch) const;

  // Whether pixels that are cached are all that a sample needs.
  bool is_cached(SampleId id) const;

  // Whether samples are copied into the batch as they are stored, which takes very little time.
  bool copies_raw() const { return copies_raw_; }

  // Called when nothing is loaded any more: `convert` may hold a reference to the engine.
  void forget_convert() { spec_.convert = nullptr; }

 private:
  // Where one image of every sample goes: into which buffers, after which transforms.
  struct ImageOutput {
    PixelMode mode = PixelMode::kRgb;
    bool converted = false;  // rows of pixels become another form
    std::vector<TransformSpec> transforms = {};
    std::vector<size_t> slot_bytes = {};                    // of each transform
    std::vector<std::shared_ptr<BufferPool>> buffers = {};  // of each transform
  };
  using Buffers = std::vector<std::shared_ptr<uint8_t[]>>;

  ImageOutput output_of(std::vector<TransformSpec> transforms, PixelMode mode,
                        const PixelFormat& format) const;
  std::vector<ImageOutput> plane_outputs() const;

  // The fast path for records whose pixels go into the batch as they are stored: they are checked while they
  // are copied. False if the sample has to go the ordinary way, which also says what is wrong with it.
  bool copy_raw(Batch& batch, size_t row, SampleId id, SampleScratch& scratch) const;
  // The image, from the cache or else from the source; fills in everything about the sample but its pixels.
  StoredImage read(Batch& batch, size_t row, SampleId id, SampleScratch& scratch) const;
  // What the source says of a sample, with its fields where batches have some.
  SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SampleScratch& scratch) const;
  // Where decoding may begin in an image of the sample that `bytes` hold.
  EntryPoints* entries_of(uint64_t number, std::span<const uint8_t> bytes, SampleScratch& scratch) const;
  // A file with its orientation, if that is applied; as its pixels where the core does not decode its format.
  StoredImage convert(StoredImage image, SampleScratch& scratch) const;
  // Caches the pixels of an image if they fit. A file is decoded for it.
  StoredImage cache(StoredImage image, uint64_t number, int64_t label, SampleScratch& scratch) const;
  // Whether samples need nothing but pixels, so that those of the cache will do.
  bool needs_only_pixels(SampleId id) const;
  void decode(Batch& batch, size_t row, const StoredImage& image, SampleScratch& scratch) const;
  // `orientation` is that of the image, by which masks are turned.
  void decode_plane(Batch& batch, size_t row, size_t plane, Orientation orientation,
                    const SampleRandom& random, SampleScratch& scratch) const;
  // Where the rows of each transform go first: into the batch, or if they are to be converted, into the
  // scratch.
  static void choose_slots(const ImageOutput& output, const Buffers& images, size_t row,
                           SampleScratch& scratch);
  void convert_rows(const ImageOutput& output, const Buffers& images, size_t row,
                    SampleScratch& scratch) const;
  static void set_columns(Batch& batch, size_t row, const SampleScratch& scratch);

  std::shared_ptr<const SampleSource> source_;
  EngineSpec spec_;
  PixelWriter writer_;
  // Until an image comes that has to be decoded.
  mutable std::atomic<bool> copies_raw_;
  ImageOutput image_;                          // of the first image
  std::vector<ImageOutput> planes_;            // of the fields
  const std::unique_ptr<EntryTable> entries_;  // of the first image of each sample
};

}  // namespace stoker
