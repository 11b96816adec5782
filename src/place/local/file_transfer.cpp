// SPDX-License-Identifier: Apache-2.0
#include "place/local/file_transfer.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace agbox {
namespace {

// The more a pipe holds, the less often both sides wait for each other. The kernel may refuse it.
constexpr int kTransferPipeSize = 1 << 20;

struct TransferPipe {
  UniqueFd ours;
  UniqueFd guests;
};

Result<TransferPipe> make_transfer_pipe(FileOrder::Direction direction) {
  std::array<int, 2> ends;
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return std::unexpected(errno_error("create a pipe", errno));
  }
  UniqueFd reading(ends[0]);
  UniqueFd writing(ends[1]);
  ::fcntl(writing.get(), F_SETPIPE_SZ, kTransferPipeSize);
  TransferPipe pipe;
  if (direction == FileOrder::Direction::In) {
    pipe = {.ours = std::move(writing), .guests = std::move(reading)};
  } else {
    pipe = {.ours = std::move(reading), .guests = std::move(writing)};
  }
  // Each end has flags of its own.
  if (::fcntl(pipe.ours.get(), F_SETFL, O_NONBLOCK) != 0) {
    return std::unexpected(errno_error("create a pipe", errno));
  }
  return pipe;
}

}  // namespace

boost::asio::awaitable<Result<FilesReport>> transfer_files(
    std::shared_ptr<guestlink::GuestLink> guest, FileOrder order,
    std::function<void(FilePipe)> on_open) {
  AGBOX_CO_TRY(pipe, make_transfer_pipe(order.direction));
  AGBOX_CO_TRY(id, guest->transfer_files(order, std::move(pipe.guests)));
  on_open({.end = std::move(pipe.ours)});
  AGBOX_CO_TRY(report, co_await guest->files_report(id));
  co_return report;
}

}  // namespace agbox
