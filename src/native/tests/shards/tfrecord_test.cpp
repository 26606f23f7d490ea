#include "core/shards/tfrecord.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <thread>

#include "core/shards/crc32c.h"

namespace {

using stoker::Error;
using stoker::ErrorCode;
using stoker::PayloadCheck;
using stoker::RandomAccessFile;
using stoker::RecordExtent;
using Bytes = std::vector<uint8_t>;

// A directory of its own for one test.
class Scratch {
 public:
  Scratch() {
    std::string pattern = (std::filesystem::temp_directory_path() / "stoker-test-XXXXXX").string();
    REQUIRE(::mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
  }
  ~Scratch() { std::filesystem::remove_all(directory_); }
  std::string file(const Bytes& bytes, const std::string& name = "a.tfrecord") const {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

 private:
  std::filesystem::path directory_;
};

Bytes payload_of(size_t size, unsigned seed) {
  Bytes bytes(size);
  for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<uint8_t>(i * 131 + seed * 7 + i / 251);
  return bytes;
}

void append_frame(Bytes& shard, const Bytes& payload) {
  const size_t start = shard.size();
  shard.resize(start + payload.size() + stoker::kFrameBytes);
  stoker::write_frame(payload, std::span(shard).subspan(start));
}

Bytes shard_of(const std::vector<size_t>& sizes) {
  Bytes shard;
  for (size_t i = 0; i < sizes.size(); ++i)
    append_frame(shard, payload_of(sizes[i], static_cast<unsigned>(i)));
  return shard;
}

template <typename Body>
Error error_of(Body body) {
  try {
    body();
  } catch (const Error& e) {
    return e;
  }
  FAIL("nothing was thrown");
  std::abort();
}

// Sizes around the scanner's window (1 MiB), its threshold for stepping over (64 KiB) and its first read of a
// longer record (4 KiB).
const std::vector<size_t> kSizes = {0,     1,       5000, (1 << 20) - 28, 3,    (1 << 20) - 7, 70000,
                                    70001, 66000,   0,    4066,           4067, 100000,        8176,
                                    12,    3 << 20, 1,    64 << 10,       2};

}  // namespace

TEST_CASE("tfrecord: the frame of an empty record is the one TensorFlow writes") {
  CHECK(shard_of({0}) == Bytes{0, 0, 0, 0, 0, 0, 0, 0, 0x29, 0x03, 0x98, 0x07, 0xd8, 0xea, 0x82, 0xa2});
}

TEST_CASE("tfrecord: a scan finds every record, checked or not") {
  const Scratch scratch;
  const RandomAccessFile shard(scratch.file(shard_of(kSizes)));
  std::vector<RecordExtent> expected;
  uint64_t at = 0;
  for (size_t size : kSizes) {
    expected.push_back({at, size + 16});
    at += size + 16;
  }
  CHECK(stoker::scan_shard(shard, PayloadCheck::kOn) == expected);
  CHECK(stoker::scan_shard(shard, PayloadCheck::kOff) == expected);
  stoker::ScratchBytes buffer;
  for (size_t i = 0; i < kSizes.size(); ++i) {
    const auto payload = stoker::read_record(shard, expected[i], buffer);
    REQUIRE(Bytes(payload.begin(), payload.end()) == payload_of(kSizes[i], static_cast<unsigned>(i)));
  }
}

TEST_CASE("tfrecord: an empty file has no records") {
  const Scratch scratch;
  CHECK(stoker::scan_shard(RandomAccessFile(scratch.file({}))).empty());
}

TEST_CASE("tfrecord: every changed byte is blamed on its own record") {
  const Scratch scratch;
  const std::vector<size_t> sizes = {5, 0, 17};
  const Bytes good = shard_of(sizes);
  for (size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= 0x10;
    const RandomAccessFile shard(scratch.file(bad));
    const Error e = error_of([&] { stoker::scan_shard(shard); });
    const int64_t record = at < 21 ? 0 : at < 37 ? 1 : 2;
    REQUIRE(e.code() == ErrorCode::kCorruptRecord);
    REQUIRE(e.where().record == record);
    REQUIRE(e.where().offset == (record == 0 ? 0 : record == 1 ? 21 : 37));
    REQUIRE(e.where().path == shard.name());
  }
}

TEST_CASE("tfrecord: with the check off, only lengths are looked at") {
  const Scratch scratch;
  Bytes bytes = shard_of({70000, 5});
  bytes[100] ^= 1;
  const RandomAccessFile shard(scratch.file(bytes));
  CHECK(stoker::scan_shard(shard, PayloadCheck::kOff).size() == 2);
  stoker::ScratchBytes buffer;
  CHECK(stoker::read_record(shard, {0, 70016}, buffer, 0, PayloadCheck::kOff)[88] == bytes[100]);
  CHECK(error_of([&] { stoker::read_record(shard, {0, 70016}, buffer); }).code() ==
        ErrorCode::kCorruptRecord);
}

TEST_CASE("tfrecord: a shard cut anywhere but between records is truncated") {
  const Scratch scratch;
  const Bytes good = shard_of({5, 0, 17});
  for (PayloadCheck check : {PayloadCheck::kOn, PayloadCheck::kOff}) {
    for (size_t cut = 0; cut <= good.size(); ++cut) {
      const RandomAccessFile shard(
          scratch.file(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(cut))));
      if (cut == 0 || cut == 21 || cut == 37 || cut == good.size()) {
        REQUIRE(stoker::scan_shard(shard, check).size() == (cut == 0    ? 0U
                                                            : cut == 21 ? 1U
                                                            : cut == 37 ? 2U
                                                                        : 3U));
      } else {
        const Error e = error_of([&] { stoker::scan_shard(shard, check); });
        REQUIRE(e.code() == ErrorCode::kTruncatedShard);
        REQUIRE(e.where().record == (cut < 21 ? 0 : cut < 37 ? 1 : 2));
      }
    }
  }
}

TEST_CASE("tfrecord: lengths near the top of 64 bits do not wrap around") {
  const Scratch scratch;
  for (uint64_t claimed :
       {~uint64_t{0}, ~uint64_t{0} - 15, ~uint64_t{0} - 16, uint64_t{1} << 63, uint64_t{1} << 40}) {
    const auto header = stoker::frame_header(claimed);
    Bytes bytes(64);
    std::ranges::copy(header, bytes.begin());
    const RandomAccessFile shard(scratch.file(bytes));
    for (PayloadCheck check : {PayloadCheck::kOn, PayloadCheck::kOff}) {
      CHECK(error_of([&] { stoker::scan_shard(shard, check); }).code() == ErrorCode::kTruncatedShard);
    }
  }
}

TEST_CASE("tfrecord: an extent the file cannot hold is refused before anything is allocated") {
  const Scratch scratch;
  const RandomAccessFile shard(scratch.file(shard_of({5})));
  stoker::ScratchBytes buffer;
  const uint64_t top = std::numeric_limits<uint64_t>::max();
  for (const RecordExtent& extent :
       {RecordExtent{0, 22}, {21, 16}, {22, 0}, {0, top}, {top, 16}, {top, top}, {1, top}}) {
    CHECK(error_of([&] { stoker::read_record(shard, extent, buffer); }).code() == ErrorCode::kTruncatedShard);
  }
  CHECK(buffer.size() == 0);
}

TEST_CASE("tfrecord: no memory is taken for a long frame that its header or a hole belies") {
  constexpr uint64_t kLong = uint64_t{600} << 20;
  const Scratch scratch;
  const auto belied = [&](uint64_t payload_bytes, uint64_t file_bytes) {
    const auto header = stoker::frame_header(payload_bytes);
    const std::string path = scratch.file({header.begin(), header.end()});
    REQUIRE(::truncate(path.c_str(), static_cast<off_t>(file_bytes)) == 0);
    stoker::ScratchBytes buffer;
    const Error e = error_of([&] { stoker::read_record(RandomAccessFile(path), {0, file_bytes}, buffer); });
    CHECK(e.code() == ErrorCode::kCorruptRecord);
    CHECK(buffer.size() == 0);
    return std::string(e.what());
  };
  CHECK(belied(5, kLong).find("where the index says") != std::string::npos);
  CHECK(belied(kLong - 16, kLong).find("were never written") != std::string::npos);
  CHECK(belied((uint64_t{3} << 30) - 16, uint64_t{3} << 30).find("can have 2147483647") != std::string::npos);
  const RandomAccessFile sparse(scratch.path("a.tfrecord"));
  for (PayloadCheck check : {PayloadCheck::kOn, PayloadCheck::kOff}) {
    const Error e = error_of([&] { stoker::scan_shard(sparse, check); });
    CHECK(std::string(e.what()).find("can have 2147483647") != std::string::npos);
  }
}

TEST_CASE("a hole is what was never written, if there is much of it") {
  const Scratch scratch;
  const std::string path = scratch.file(Bytes(100'000, 1));
  REQUIRE(::truncate(path.c_str(), off_t{200} << 20) == 0);
  const uint64_t size = uint64_t{200} << 20;
  {
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.seekp(100 << 20) << "data";
  }
  const RandomAccessFile file(path);
  CHECK(file.has_hole(0, size));
  CHECK(file.has_hole(101 << 20, size - (101 << 20)));
  CHECK_FALSE(file.has_hole(1 << 20, stoker::kMostHoleBytes));
  CHECK_FALSE(file.has_hole(size, size));  // beyond the end
  CHECK_FALSE(RandomAccessFile(scratch.file(Bytes(40 << 20, 1), "whole")).has_hole(0, 40 << 20));
}

TEST_CASE("tfrecord: an index that does not belong to the shard is found from the record") {
  const Scratch scratch;
  const RandomAccessFile shard(scratch.file(shard_of({5, 40})));
  stoker::ScratchBytes buffer;
  for (const RecordExtent& extent : {RecordExtent{0, 0}, {0, 15}, {0, 20}, {0, 22}, {1, 21}, {21, 21}}) {
    const Error e = error_of([&] { stoker::read_record(shard, extent, buffer, 7); });
    CHECK(e.code() == ErrorCode::kCorruptRecord);
    CHECK(e.where().record == 7);
    CHECK(e.where().offset == static_cast<int64_t>(extent.offset));
    CHECK(std::string(e.what()).find("index") != std::string::npos);
  }
}

TEST_CASE("tfrecord: a file cut while it is open is an error, not a signal") {
  const Scratch scratch;
  const std::string path = scratch.file(shard_of({5, 3 << 20}));
  const RandomAccessFile shard(path);
  REQUIRE(::truncate(path.c_str(), 2 << 20) == 0);
  stoker::ScratchBytes buffer;
  CHECK(error_of([&] { stoker::read_record(shard, {21, (3 << 20) + 16}, buffer); }).code() ==
        ErrorCode::kTruncatedShard);
  const Error e = error_of([&] { stoker::scan_shard(shard); });
  CHECK(e.code() == ErrorCode::kTruncatedShard);
  CHECK(e.where().record == 1);
  CHECK(e.where().offset == 21);
  // A step over a payload meets the end only at the footer's far side, where the next header would be.
  REQUIRE(::truncate(path.c_str(), 10) == 0);
  CHECK(error_of([&] { stoker::scan_shard(shard, PayloadCheck::kOff); }).code() ==
        ErrorCode::kTruncatedShard);
}

TEST_CASE("tfrecord: what is not a regular file is refused with the system's number") {
  const Scratch scratch;
  const auto number = [&](const std::string& path) {
    const Error e = error_of([&] { RandomAccessFile shard(path); });
    CHECK(e.code() == ErrorCode::kIo);
    CHECK(e.where().path == path);
    return e.system_errno();
  };
  CHECK(number(scratch.path("missing")) == ENOENT);
  CHECK(number(scratch.path("")) == EISDIR);
  REQUIRE(::mkfifo(scratch.path("pipe").c_str(), 0600) == 0);
  CHECK(number(scratch.path("pipe")) == ESPIPE);  // and opening it did not wait for a writer
}

TEST_CASE("tfrecord: compressed files are recognised") {
  const Scratch scratch;
  Bytes gzip(40);
  gzip[0] = 0x1f;
  gzip[1] = 0x8b;
  const RandomAccessFile shard(scratch.file(gzip));
  CHECK(std::string(error_of([&] { stoker::scan_shard(shard); }).what()).find("GZIP") != std::string::npos);
  Bytes zlib(40);
  zlib[0] = 0x78;
  zlib[1] = 0x9c;
  const RandomAccessFile other(scratch.file(zlib, "b.tfrecord"));
  CHECK(std::string(error_of([&] { stoker::scan_shard(other); }).what()).find("ZLIB") != std::string::npos);
}

TEST_CASE("tfrecord: one open shard serves several threads") {
  const Scratch scratch;
  const RandomAccessFile shard(scratch.file(shard_of(kSizes)));
  const auto extents = stoker::scan_shard(shard);
  std::vector<std::thread> readers;
  std::vector<size_t> wrong(4);
  for (size_t reader = 0; reader < wrong.size(); ++reader) {
    readers.emplace_back([&, reader] {
      stoker::ScratchBytes buffer;
      for (size_t i = 0; i < extents.size(); ++i) {
        const size_t pick = (i * 7 + reader) % extents.size();
        const auto payload = stoker::read_record(shard, extents[pick], buffer);
        if (Bytes(payload.begin(), payload.end()) != payload_of(kSizes[pick], static_cast<unsigned>(pick)))
          ++wrong[reader];
      }
    });
  }
  for (std::thread& reader : readers) reader.join();
  CHECK(wrong == std::vector<size_t>(4));
}
