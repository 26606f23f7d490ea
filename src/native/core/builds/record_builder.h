// JPEG files of this machine to framed records: read, check, keep or encode anew, frame.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/scratch_bytes.h"
#include "core/builds/record_template.h"
#include "core/builds/stored_size.h"
#include "core/threads/buffer_pool.h"
#include "core/transforms/reencode.h"

namespace stoker {

// What a recipe does to a JPEG that needs nothing special.
struct JpegStoring {
  std::optional<StoredSize> size;  // none keeps all bytes
  ReencodeSpec reencode;           // of what is not kept; its part and its size follow from the image
  bool keeps_small = true;         // whether what StoredSizeMode::kMax leaves alone keeps its bytes
  bool turns = false;              // whether EXIF orientations are applied
};

// Frames end to end, as a shard holds them.
struct FramedRecords {
  std::shared_ptr<uint8_t[]> bytes;
  size_t size = 0;
  std::vector<uint64_t> sizes;  // of each frame
  uint32_t crc = 0;             // CRC-32C of all
  uint64_t kept = 0;            // records whose image is the file as it is
};

struct FileToStore {
  std::string path;   // absolute; what follows its last slash is the file name of the record
  uint64_t size = 0;  // in bytes, as far as known
  const RecordTemplate* record = nullptr;
};

// One per thread; it keeps its scratch memory.
class RecordBuilder {
 public:
  // Memory for records comes from `pool`, as long as it is large enough.
  explicit RecordBuilder(std::shared_ptr<BufferPool> pool) : pool_(std::move(pool)) {}

  // Returns the records of the first files, up to the first file that is not plain: it is not a local JPEG
  // that every reader decodes to RGB, is damaged, has to be turned, or is too large for the storing. The
  // caller handles such a file in another way. The time limit may end this earlier, but not before the first
  // record.
  FramedRecords run(std::span<const FileToStore> files, const JpegStoring& storing,
                    std::chrono::nanoseconds limit);

 private:
  bool add(const FileToStore& file, const JpegStoring& storing, FramedRecords& out);
  std::optional<std::span<const uint8_t>> read(const std::string& path);
  void append(const ExampleWriter& example, FramedRecords& out);

  const std::shared_ptr<BufferPool> pool_;
  ScratchBytes file_;
  size_t capacity_ = 0;  // of what is being made
  Reencoder reencoder_;
};

}  // namespace stoker
