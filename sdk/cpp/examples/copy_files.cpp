// SPDX-License-Identifier: Apache-2.0
// Gives a sandbox a file, and takes a directory out of it: copy_files DIRECTORY.
#include <agbox/agbox.h>

#include <iostream>
#include <string>

agbox::Result<void> copy_files(const std::string& directory) {
  auto client = agbox::Client::open();
  if (!client) return std::unexpected(client.error());
  auto box = client->create({.image = "debian:12"});
  if (!box) return std::unexpected(box.error());

  auto written = box->write_file("/workspace/names.txt", "pear\napple\n");
  if (!written) return written;
  auto sorted = box->run(agbox::shell("mkdir results; sort names.txt > results/sorted.txt"));
  if (!sorted) return std::unexpected(sorted.error());
  auto copied = box->copy_out("/workspace/results", directory);  // DIRECTORY/results
  if (!copied) return std::unexpected(copied.error());
  auto text = box->read_file("/workspace/results/sorted.txt", 1'000'000);
  if (!text) return std::unexpected(text.error());
  std::cout << copied->entries << " entries\n" << *text;
  return {};
}

int main(int argc, char** argv) {
  const auto done = copy_files(argc > 1 ? argv[1] : ".");
  if (done) return 0;
  std::cerr << done.error().message << "\n";
  return 1;
}
