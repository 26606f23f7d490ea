// Frames of records in mapped files.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/shards/tfrecord.h"
#include "core/sources/sample_source.h"

namespace stoker {

// Longer frames are read by position, which begins only once the bytes are known to be there.
inline constexpr uint64_t kMostMappedFrame = uint64_t{1} << 20;

// The bytes of a frame, if a mapping has them.
std::span<const uint8_t> frame_in(std::span<const uint8_t> mapped, const RecordExtent& extent);

// As SampleSource::fetch_unchecked(), of a frame that is mapped for as long as what is given is used. Nothing
// if the frame cannot be read or its length is another: to read it by position says what is wrong.
std::optional<FetchedSample> fetch_mapped(std::span<const uint8_t> there, SourceScratch& scratch);

// The payload of such a frame, copied to `buffer` and checked in the same pass; nothing if anything is wrong.
std::span<const uint8_t> copy_mapped(std::span<const uint8_t> there, ScratchBytes& buffer);

}  // namespace stoker
