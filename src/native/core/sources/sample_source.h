// Where samples come from: one interface over records of shards and over images that are files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/mapped_reads.h"
#include "core/base/scratch_bytes.h"
#include "core/base/stored_image.h"
#include "core/clocks/stage_clock.h"
#include "core/remote/remote_reader.h"
#include "core/shards/tfrecord.h"
#include "core/sources/record_fields.h"

namespace stoker {

inline constexpr int32_t kWholeImage = -1;

// One annotated object of a sample, or kWholeImage.
struct SampleId {
  uint64_t number = 0;
  int32_t object = kWholeImage;
};

// Where the pixels of the next sample probably begin in its bytes, judging by the last sample.
struct PixelsGuess {
  size_t begin = 0;
  size_t size = 0;      // 0: nothing is expected
  uint64_t before = 0;  // the eight bytes in front of them, which say their length
};

// The record that a thread will ask for next.
struct PrefetchHint {
  const void* set = nullptr;  // of records; nothing: it is not known
  uint64_t number = 0;
  size_t shard = 0;
  size_t record = 0;  // in the shard
  RecordExtent extent;
  std::span<const uint8_t> mapped{};  // its frame, to be prefetched and never to be read
};

// Memory that one thread keeps from sample to sample.
struct SourceScratch {
  std::shared_ptr<const void> held;  // keeps alive what fetch() gave, where that is shared with others
  std::optional<uint32_t> crc;       // CRC-32C of all that fetch() gave, where the source has computed it
  RemoteScratch remote;
  StageClock clock;
  ScratchBytes bytes;
  MappedReads mapped;
  PixelsGuess pixels;
  PrefetchHint hint;
  std::vector<int64_t> numbers;
  std::vector<float> fractions;
  std::vector<std::span<const uint8_t>> values;
};

// The CRC-32C of `bytes`, which fetch() has just given.
uint32_t crc_of(std::span<const uint8_t> bytes, const SourceScratch& scratch);

// Borrows from the scratch.
struct SourceSample {
  StoredImage image;
  int64_t label = -1;  // -1: none
};

// Bytes as fetch() gives them, but perhaps not yet checked, and perhaps without those of the pixels.
struct FetchedSample {
  std::span<const uint8_t> bytes;
  std::optional<uint32_t> crc;      // the CRC-32C that they must have; nothing: they need no check
  std::span<const uint8_t> left{};  // the part of `bytes` that is not filled in
  const uint8_t* mapped = nullptr;  // its bytes, in a mapped file that the scratch keeps

  // Copies a part of `bytes`, and checks all of them in the same pass; returns whether they are right. False
  // if the part that was left out is another one. `guess` becomes the expectation for the next sample.
  // Meanwhile the processor fetches `next` from memory into its caches.
  bool copy(std::span<const uint8_t> part, uint8_t* out, PixelsGuess& guess,
            std::span<const uint8_t> next = {}) const;
};

// Samples 0..size()-1, read from any thread.
class SampleSource {
 public:
  SampleSource() = default;
  virtual ~SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;

  virtual uint64_t size() const = 0;

  // The bytes that hold a sample; `scratch` keeps them until the next call. It may set `scratch.crc`, which
  // is empty beforehand. Errors say where by themselves.
  virtual std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const = 0;

  // The same for a caller that reads all bytes once in any case, and checks them in that pass. In a mapped
  // file, bytes that are probably pixels are not copied. If anything is wrong, the caller drops its result,
  // and fetch() throws the error.
  virtual FetchedSample fetch_unchecked(uint64_t number, SourceScratch& scratch) const {
    return {fetch(number, scratch), std::nullopt};
  }

  // The image and the label in `bytes`, which fetch() gave. Sets `name`, the name of the sample for messages,
  // before anything can go wrong. Errors do not say where; the caller puts where() in front.
  virtual SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                                std::string& name) const = 0;

  // Appends the annotated objects of a sample to `boxes`. `label` is the sample's, which an object has whose
  // own is not stored. Errors as those of describe().
  virtual void append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label,
                            SourceScratch& scratch, std::vector<LabelledBox>& boxes) const = 0;

  // Reads the fields of a sample. Errors as those of describe(); kBadArgument if samples have none.
  virtual void read_fields(uint64_t number, std::span<const uint8_t> bytes, const FieldSpec& spec,
                           RecordFields& fields) const;

  // describe() and read_fields() in one, which need not go through the bytes twice. Errors as theirs.
  virtual SourceSample describe_with_fields(SampleId id, std::span<const uint8_t> bytes,
                                            const FieldSpec& spec, SourceScratch& scratch, std::string& name,
                                            RecordFields& fields) const;

  // Asks the system to read the bytes of fetch() from a disk, and does not wait for them, but for the file to
  // be found and opened. Returns the number of bytes; 0 for a sample that is not on a disk. Throws as
  // fetch().
  virtual uint64_t start_reading(uint64_t) const { return 0; }

  // Which bytes fetch() would take from remote storage; of a sample that is here, none.
  virtual RemoteSpan remote_span(uint64_t) const { return {}; }

  // Looks up, in `scratch.hint`, a sample that the calling thread will ask for next, if that helps. Throws
  // nothing: what is wrong with the sample is an error when it is asked for.
  virtual void expect(uint64_t, SourceScratch& scratch) const { scratch.hint = {}; }

  // Where a sample lies, for messages.
  virtual Where where(uint64_t number) const = 0;
};

}  // namespace stoker
