// Where samples come from: one interface over records of shards and over images that are files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/errors.h"
#include "core/base/scratch_bytes.h"
#include "core/base/stored_image.h"
#include "core/clocks/stage_clock.h"
#include "core/remote/remote_reader.h"

namespace stoker {

inline constexpr int32_t kWholeImage = -1;

// One annotated object of a sample, or kWholeImage.
struct SampleId {
  uint64_t number = 0;
  int32_t object = kWholeImage;
};

// Memory that one thread keeps from sample to sample.
struct SourceScratch {
  std::shared_ptr<const void> held;  // keeps alive what fetch() gave, where that is shared with others
  RemoteScratch remote;
  StageClock clock;
  ScratchBytes bytes;
  std::vector<int64_t> numbers;
  std::vector<float> fractions;
  std::vector<std::span<const uint8_t>> values;
};

// Borrows from the scratch.
struct SourceSample {
  StoredImage image;
  int64_t label = -1;  // -1: none
};

// Bytes as fetch() gives them, but perhaps not yet checked.
struct FetchedSample {
  std::span<const uint8_t> bytes;
  std::optional<uint32_t> crc;  // the CRC-32C that they must have; nothing: they need no check

  // Copies a part of `bytes`, and checks all of them in the same pass; whether they are as they must be.
  bool copy(std::span<const uint8_t> part, uint8_t* out) const;
};

// Samples 0..size()-1, read from any thread.
class SampleSource {
 public:
  SampleSource() = default;
  virtual ~SampleSource() = default;
  SampleSource(const SampleSource&) = delete;
  SampleSource& operator=(const SampleSource&) = delete;

  virtual uint64_t size() const = 0;

  // The bytes that hold a sample; `scratch` keeps them until the next call. Errors say where by themselves.
  virtual std::span<const uint8_t> fetch(uint64_t number, SourceScratch& scratch) const = 0;

  // The same for a caller that goes through the bytes once in any case and checks them in that pass. If they
  // are wrong, the caller drops what it made of them, and fetch() throws what is wrong.
  virtual FetchedSample fetch_unchecked(uint64_t number, SourceScratch& scratch) const {
    return {fetch(number, scratch), std::nullopt};
  }

  // What of `bytes`, which fetch() gave, is the image and the label. Fills `name`, the sample's for messages,
  // before anything can go wrong. Errors do not say where; the caller puts where() in front.
  virtual SourceSample describe(SampleId id, std::span<const uint8_t> bytes, SourceScratch& scratch,
                                std::string& name) const = 0;

  // Appends the annotated objects of a sample to `boxes`. `label` is the sample's, which an object has whose
  // own is not stored. Errors as those of describe().
  virtual void append_boxes(uint64_t number, std::span<const uint8_t> bytes, int64_t label,
                            SourceScratch& scratch, std::vector<LabelledBox>& boxes) const = 0;

  // Which bytes fetch() would take from remote storage; of a sample that is here, none.
  virtual RemotePlace remote_place(uint64_t) const { return {}; }

  // Where a sample lies, for messages.
  virtual Where where(uint64_t number) const = 0;
};

}  // namespace stoker
