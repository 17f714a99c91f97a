package outbound

import "net/netip"

// deniedV4 lists the IPv4 ranges that are not the public internet.
var deniedV4 = prefixes(
	"0.0.0.0/8",       // "this network"; some systems take 0.0.0.0 for loopback
	"10.0.0.0/8",      // private
	"100.64.0.0/10",   // carrier NAT, used inside clouds
	"127.0.0.0/8",     // loopback
	"169.254.0.0/16",  // link-local, the clouds' metadata servers
	"172.16.0.0/12",   // private
	"192.0.0.0/24",    // protocol assignments
	"192.0.2.0/24",    // documentation
	"192.88.99.0/24",  // 6to4 relays
	"192.168.0.0/16",  // private
	"198.18.0.0/15",   // benchmarks
	"198.51.100.0/24", // documentation
	"203.0.113.0/24",  // documentation
	"224.0.0.0/4",     // multicast
	"240.0.0.0/4",     // reserved and broadcast
)

// publicV6 is the only part of IPv6 that is handed out as public. Everything else
// is refused by not being in it: loopback, the unique local fc00::/7 (with it
// Fly's fdaa::/16), link-local, site-local, multicast, and the forms that carry an
// IPv4 address through a translator (::/96, ::ffff:0:0:0/96, 64:ff9b::/96,
// 64:ff9b:1::/48).
var publicV6 = netip.MustParsePrefix("2000::/3")

// deniedV6 lists what lies in publicV6 and is still not the public internet.
var deniedV6 = prefixes(
	"2001::/23",     // protocol assignments, with them Teredo 2001::/32, which carries IPv4
	"2001:db8::/32", // documentation
	"2002::/16",     // 6to4, carries IPv4
	"3fff::/20",     // documentation
)

func prefixes(texts ...string) []netip.Prefix {
	list := make([]netip.Prefix, len(texts))
	for i, text := range texts {
		list[i] = netip.MustParsePrefix(text)
	}
	return list
}

// Public tells whether an address belongs to the public internet. An address
// with a zone never does; an IPv4 address in IPv6 clothing is judged as IPv4.
func Public(addr netip.Addr) bool {
	if !addr.IsValid() || addr.Zone() != "" {
		return false
	}
	addr = addr.Unmap()
	if addr.Is4() {
		return !within(deniedV4, addr)
	}
	return publicV6.Contains(addr) && !within(deniedV6, addr)
}

func within(list []netip.Prefix, addr netip.Addr) bool {
	for _, prefix := range list {
		if prefix.Contains(addr) {
			return true
		}
	}
	return false
}
