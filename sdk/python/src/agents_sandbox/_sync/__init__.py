# SPDX-License-Identifier: Apache-2.0
"""The synchronous client, generated of the asynchronous one by scripts/make_sync.py, except platform.py."""
