#include "core/builds/record_builder.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <limits>
#include <utility>

#include "core/base/errors.h"
#include "core/base/random_access_file.h"
#include "core/jpeg/header.h"
#include "core/shards/crc32c.h"
#include "core/shards/tfrecord.h"

namespace stoker {
namespace {

using Clock = std::chrono::steady_clock;

// Larger files would have to be searched for parts that were never written.
constexpr uint64_t kMostFileBytes = kMostHoleBytes;
constexpr size_t kHeadBytes = 4096;
constexpr size_t kWorthKeeping = 8;  // of records that fill less than this part of a buffer, a copy is kept

// Whether every reader decodes it to RGB.
bool is_plain(const JpegInfo& info) {
  const bool is_known =
      info.color == JpegColor::kGrey || info.color == JpegColor::kYcbcr || info.color == JpegColor::kRgb;
  return is_known && !info.arithmetic;
}

// As the recipe has it: of "square" the largest square in the middle, an odd pixel right or below.
Rect part_of(const StoredSize& size, Extent image) {
  if (size.mode != StoredSizeMode::kSquare) return {0, 0, image.width, image.height};
  const int32_t side = std::min(image.width, image.height);
  return {(image.width - side) / 2, (image.height - side) / 2, side, side};
}

std::span<const uint8_t> name_of(const std::string& path) {
  const size_t begin = path.rfind('/') + 1;  // 0 without a slash
  return {reinterpret_cast<const uint8_t*>(path.data()) + begin, path.size() - begin};
}

uint32_t extended(uint32_t crc, std::span<const uint8_t> bytes, uint32_t crc_of_bytes) {
  return bytes.size() < kLeastJoined ? crc32c_extend(crc, bytes)
                                     : crc32c_join(crc, crc_of_bytes, bytes.size());
}

}  // namespace

FramedRecords RecordBuilder::run(std::span<const FileToStore> files, const JpegStoring& storing,
                                 std::chrono::nanoseconds limit) {
  FramedRecords out;
  out.bytes = pool_->take();
  capacity_ = pool_->size_bytes();
  const auto end = Clock::now() + limit;
  for (const FileToStore& file : files) {
    try {
      if (!add(file, storing, out)) break;
    } catch (const std::exception&) {  // also where there is no memory: another may have less need of it
      break;
    }
    if (Clock::now() >= end) break;
  }
  // Records may wait long to be written, those of a build's sample until its end, so they must not waste
  // memory.
  if (out.size < capacity_ / kWorthKeeping) {
    std::shared_ptr<uint8_t[]> copy(new uint8_t[out.size]);
    std::copy_n(out.bytes.get(), out.size, copy.get());
    out.bytes = std::move(copy);
  }
  return out;
}

bool RecordBuilder::add(const FileToStore& file, const JpegStoring& storing, FramedRecords& out) {
  const auto bytes = file.size > kMostFileBytes ? std::nullopt : read(file.path);
  if (!bytes) return false;
  const JpegInfo info = check_jpeg(*bytes);
  const auto width = static_cast<uint64_t>(info.width), height = static_cast<uint64_t>(info.height);
  if (width * height > storing.reencode.max_pixels || !is_plain(info)) return false;
  if (storing.turns && info.orientation != 1) return false;
  const PixelSize image{info.width, info.height};
  RecordImage record{*bytes, name_of(file.path), image.width, image.height};
  const bool is_kept = !storing.size || (storing.keeps_small && storing.size->mode == StoredSizeMode::kMax &&
                                         storing.size->target(image) == image);
  std::vector<uint8_t> encoded;
  if (!is_kept) {
    ReencodeSpec spec = storing.reencode;
    spec.part = part_of(*storing.size, {info.width, info.height});
    const PixelSize target = storing.size->target({spec.part.width, spec.part.height});
    if (std::max(target.width, target.height) > kMostJpegSide) return false;
    spec.size = {static_cast<int32_t>(target.width), static_cast<int32_t>(target.height)};
    encoded = reencoder_.run(*bytes, spec);
    record.image = encoded;
    record.width = target.width;
    record.height = target.height;
  }
  append(file.record->fill(record), out);
  out.kept += is_kept ? 1 : 0;
  return true;
}

std::optional<std::span<const uint8_t>> RecordBuilder::read(const std::string& path) {
  const RandomAccessFile file(path);
  if (file.size() > kMostFileBytes) return std::nullopt;
  const auto size = static_cast<size_t>(file.size());
  uint8_t* const bytes = file_.take(std::max(size + 1, kHeadBytes));
  // The caller reads files that are not JPEGs. Reading one more byte shows whether the file has grown.
  const size_t head = file.read_at(0, {bytes, std::min(size + 1, kHeadBytes)});
  if (!begins_as_jpeg({bytes, head}) || head < 3 || bytes[2] != 0xff) return std::nullopt;
  const size_t rest = head < kHeadBytes ? 0 : file.read_at(head, {bytes + head, size + 1 - head});
  if (head + rest != size) return std::nullopt;
  return std::span<const uint8_t>{bytes, size};
}

void RecordBuilder::append(const ExampleWriter& example, FramedRecords& out) {
  const size_t size = example.size() + kFrameBytes;
  if (size > capacity_ - out.size) {
    const size_t capacity = std::max(out.size + size, 2 * capacity_);
    std::shared_ptr<uint8_t[]> grown(new uint8_t[capacity]);
    if (out.size != 0) std::memcpy(grown.get(), out.bytes.get(), out.size);
    out.bytes = std::move(grown);
    capacity_ = capacity;
  }
  const std::span<uint8_t> frame{out.bytes.get() + out.size, size};
  const auto payload = frame.subspan(kFrameHeaderBytes, example.size());
  example.write(payload);
  std::ranges::copy(frame_header(payload.size()), frame.begin());
  std::ranges::copy(frame_footer(payload), frame.end() - kFrameFooterBytes);
  out.sizes.push_back(size);
  uint32_t crc = crc32c_extend(out.crc, frame.first(kFrameHeaderBytes));
  crc = extended(crc, payload, stated_crc(payload));
  out.crc = crc32c_extend(crc, frame.last(kFrameFooterBytes));
  out.size += size;
}

}  // namespace stoker
