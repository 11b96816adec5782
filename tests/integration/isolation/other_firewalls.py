# SPDX-License-Identifier: Apache-2.0
"""Rules of other firewalls on a host: both block everything but known traffic, including that of Docker's
bridges."""

# Drops by policy. Docker accepts its containers' packets in the same chain of forwarded ones.
UFW_LIKE = """
table ip filter {
    chain INPUT {
        type filter hook input priority filter; policy drop;
        iifname "lo" accept
        ct state established,related accept
        ct state invalid drop
        icmp type echo-request accept
        tcp dport 22 accept
    }
    chain FORWARD {
        type filter hook forward priority filter; policy drop;
        ct state established,related accept
        iifname "agbx*" accept
    }
    chain OUTPUT { type filter hook output priority filter; policy accept; }
}
table ip6 filter {
    chain INPUT { type filter hook input priority filter; policy drop; iifname "lo" accept; }
    chain FORWARD { type filter hook forward priority filter; policy drop; }
}
"""

# Refuses by its last rules, and trusts everything from Docker's bridges: its zone `docker`.
FIREWALLD_LIKE = """
table inet firewalld {
    chain filter_INPUT {
        type filter hook input priority filter + 10; policy accept;
        ct state established,related accept
        ct status dnat accept
        iifname "lo" accept
        ct state invalid drop
        icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
        iifname "agbx*" accept
        iifname "lan0" tcp dport 22 accept
        reject with icmpx type admin-prohibited
    }
    chain filter_FORWARD {
        type filter hook forward priority filter + 10; policy accept;
        ct state established,related accept
        ct status dnat accept
        iifname "lo" accept
        ct state invalid drop
        iifname "agbx*" accept
        oifname "agbx*" accept
        reject with icmpx type admin-prohibited
    }
}
"""

OTHER_FIREWALLS = {"ufw-like": UFW_LIKE, "firewalld-like": FIREWALLD_LIKE}
