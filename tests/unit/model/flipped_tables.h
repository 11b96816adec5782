// SPDX-License-Identifier: Apache-2.0
// Tests of the tests: one row of a table of src/model gives a wrong verdict, and some test must
// notice. The linker sends every call of restart_plan(), decide(), apply() and advance() here; what
// AGBOX_FLIP does not name is passed on. scripts/flip-tables says which rows there are and judges
// what comes of them.
#pragma once

namespace agbox::flip {

// Whether a wrong verdict was given out in this process. A test may then wait in vain, and need not
// do so for long. An order that names no row is taken for it: what fails with that one needs more
// patience, whatever it is told.
bool has_misled();

}  // namespace agbox::flip
