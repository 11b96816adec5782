# SPDX-License-Identifier: Apache-2.0
"""The asynchronous client. scripts/make_sync.py generates the synchronous one of it, except platform.py."""
