// SPDX-License-Identifier: Apache-2.0
// The part of a diagnosis that is about the network of sandboxes: the firewall that holds them,
// what of others is in their way, and the addresses and resolvers that they are given.
#pragma once

#include "model/doctor/diagnosis.h"
#include "model/doctor/findings.h"

namespace agbox {

void diagnose_network(const DiagnosisFacts& facts, Findings& findings);

}  // namespace agbox
