// SPDX-License-Identifier: Apache-2.0
// Copies of host files into a sandbox at create: complete before Go, and a create that fails whole.
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "base/failpoint.h"
#include "unit/control/control_fixture.h"

namespace agbox {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class CopiesTest : public ControlTest {
 protected:
  CopiesTest() { start(); }

  fs::path tree() {
    const fs::path path = temp_directory_.path() / "tree";
    fs::create_directories(path / "sub");
    std::ofstream(path / "sub/file") << "x";
    return path;
  }
  SandboxSpec spec_with_tree() {
    SandboxSpec wanted = spec_with_copy("/first");
    v1::CopySpec& copy = *wanted.create_spec.add_copies();
    copy.set_source(tree());
    copy.set_target("/second");
    return wanted;
  }
};

TEST_F(CopiesTest, AllAreThereBeforeGoInTheirOrder) {
  create_ready("copied-1", spec_with_tree());
  EXPECT_THAT(guests_.copied(), ElementsAre("/first", "/second"));
  // A later start finds them in the container.
  stop_sandbox("copied-1");
  resume_sandbox("copied-1");
  EXPECT_EQ(guests_.copied().size(), 2U);
}

TEST_F(CopiesTest, ATreeThatCannotBeCopiedFailsTheCreateByNameAndLeavesNothing) {
  SandboxSpec wanted = spec_with_tree();
  const fs::path fifo = tree() / "sub/fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  ASSERT_TRUE(create("fifo-1", std::move(wanted)).has_value());
  wait_for_state("fifo-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle("fifo-1").error_message(),
              HasSubstr("copy source contains a FIFO: " + fifo.string()));
  expect_nothing_left();
}

TEST_F(CopiesTest, ASourceThatVanishesAfterTheAcceptFailsTheCreateByName) {
  SandboxSpec wanted = spec_with_tree();
  ASSERT_TRUE(failpoint::arm("create.copy.before=hold"));
  ASSERT_TRUE(create("gone-1", std::move(wanted)).has_value());
  wait_held_at("create.copy.before");
  stop();
  disarm();
  fs::remove_all(tree());
  start();
  wait_for_state("gone-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle("gone-1").error_message(), HasSubstr("copy source"));
  EXPECT_THAT(handle("gone-1").error_message(), HasSubstr("tree"));
  expect_nothing_left();
}

TEST_F(CopiesTest, WhatTheImageMakesImpossibleFailsTheCreateByName) {
  guests_.script.copy_failure = "/first: is not a directory in the image";
  ASSERT_TRUE(create("file-1", spec_with_tree()).has_value());
  wait_for_state("file-1", v1::SANDBOX_STATE_FAILED);
  EXPECT_THAT(handle("file-1").error_message(),
              HasSubstr("to /first: /first: is not a directory in the image"));
  expect_nothing_left();
}

}  // namespace
}  // namespace agbox
