// SPDX-License-Identifier: Apache-2.0
// The kernel's packet filter headers. Kernel and C library both define the IP protocols; they only
// agree if the C library's header comes first.
#pragma once

// clang-format off
#include <netinet/in.h>

#include <linux/netfilter.h>
#include <linux/netfilter/nf_conntrack_common.h>
#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter_arp.h>
// clang-format on
