// SPDX-License-Identifier: Apache-2.0
// The kernel's names for its packet filter. Both the kernel's headers and the C library define the
// internet's protocols; only where the C library comes first do they agree on who does.
#pragma once

// clang-format off
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_arp.h>
// clang-format on
