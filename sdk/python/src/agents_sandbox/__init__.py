# SPDX-License-Identifier: Apache-2.0
"""Client of the daemon agboxd: runs coding agents in isolated sandboxes."""
