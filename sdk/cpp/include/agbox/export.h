// SPDX-License-Identifier: Apache-2.0
// Marks what programs may call: all other symbols of the installed library are local to it.
// AGBOX_INTERNAL is for what would inherit the mark of its class.
#pragma once

#define AGBOX_API __attribute__((visibility("default")))
#define AGBOX_INTERNAL __attribute__((visibility("hidden")))
