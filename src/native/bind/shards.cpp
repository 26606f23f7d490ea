// Binds core/shards.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bind/bind.h"
#include "core/base/random_access_file.h"
#include "core/shards/crc32c.h"
#include "core/shards/tfrecord.h"

namespace stoker::bind {
namespace {

using namespace nb::literals;

using ExtentRows = nb::ndarray<nb::numpy, uint64_t, nb::shape<-1, 2>, nb::c_contig>;
static_assert(sizeof(RecordExtent) == 2 * sizeof(uint64_t), "rows are viewed in place");

uint32_t extend(const ByteView& data, uint32_t crc) {
  return without_gil_from(data.size(), [&] { return crc32c_extend(crc, bytes_of(data)); });
}

nb::bytes frame_record(const ByteView& payload) {
  const size_t size = payload.size() + kFrameBytes;
  nb::bytes frame = nb::steal<nb::bytes>(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size)));
  if (!frame.is_valid()) throw nb::python_error();
  // No other code has seen this object yet, so it may be filled without the GIL.
  auto* out = reinterpret_cast<uint8_t*>(PyBytes_AsString(frame.ptr()));
  without_gil_from(size, [&] { write_frame(bytes_of(payload), {out, size}); });
  return frame;
}

ExtentRows rows_of(std::vector<RecordExtent> records) {
  auto extents = std::make_unique<std::vector<RecordExtent>>(std::move(records));
  auto* rows = reinterpret_cast<uint64_t*>(extents->data());
  const size_t count = extents->size();
  nb::capsule owner(extents.get(),
                    [](void* p) noexcept { delete static_cast<std::vector<RecordExtent>*>(p); });
  extents.release();  // the capsule owns it now, and the array the capsule
  return ExtentRows(rows, {count, 2}, owner);
}

ExtentRows scan(nb::handle path, bool check) {
  const std::string name = system_path(path);
  std::vector<RecordExtent> extents;
  {
    WithoutGil nogil;
    extents = scan_shard(RandomAccessFile(name), check ? PayloadCheck::kOn : PayloadCheck::kOff);
  }
  return rows_of(std::move(extents));
}

nb::tuple scan_whole(nb::handle path) {
  const std::string name = system_path(path);
  ScannedShard scanned;
  {
    WithoutGil nogil;
    scanned = scan_and_sum(RandomAccessFile(name));
  }
  return nb::make_tuple(rows_of(std::move(scanned.extents)), scanned.crc);
}

nb::bytes read(nb::handle path, uint64_t offset, uint64_t size) {
  const std::string name = system_path(path);
  ScratchBytes buffer;
  std::span<const uint8_t> payload;
  {
    WithoutGil nogil;
    payload = read_record(RandomAccessFile(name), {offset, size}, buffer);
  }
  return nb::bytes(payload.data(), payload.size());
}

}  // namespace

void register_shards(nb::module_& m) {
  m.def("crc32c", &extend, "data"_a.noconvert(), "crc"_a = 0,
        nb::sig("def crc32c(data: collections.abc.Buffer, crc: int = 0) -> int"),
        "CRC-32C of `data`, or of earlier bytes whose CRC is `crc` followed by `data`.");
  m.def("crc32c_join", &crc32c_join, "crc"_a, "others"_a, "size"_a,
        "CRC-32C of some bytes followed by `size` others, from the CRCs of both.");
  m.def("frame_record", &frame_record, "payload"_a.noconvert(),
        nb::sig("def frame_record(payload: collections.abc.Buffer) -> bytes"),
        "The TFRecord frame of a payload: 16 bytes longer than it.");
  m.def("scan_shard", &scan, "path"_a, nb::kw_only(), "check"_a = true,
        nb::sig("def scan_shard(path: str, *, check: bool = True) -> "
                "numpy.typing.NDArray[numpy.uint64]"),
        "One row (offset, size) in bytes for the whole frame of each record; with `check`, payloads are "
        "verified.");
  m.def("scan_and_sum", &scan_whole, "path"_a,
        nb::sig("def scan_and_sum(path: str) -> tuple[numpy.typing.NDArray[numpy.uint64], int]"),
        "The same with the CRC-32C of the whole file, in one pass; payloads are verified.");
  m.def("read_record", &read, "path"_a, "offset"_a, "size"_a,
        nb::sig("def read_record(path: str, offset: int, size: int) -> bytes"),
        "The payload of the frame at `offset`, `size` bytes long, after both of its CRCs have been checked.");
}

}  // namespace stoker::bind
