package outbound

import (
	"net/netip"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"1.1.1.1", "8.8.8.8", "93.184.216.34", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.1",
		"192.0.1.1", "198.17.255.255", "198.20.0.1", "223.255.255.255", "::ffff:8.8.8.8",
		"2606:4700:4700::1111", "2a00:1450:4001:800::200e", "2001:4860:4860::8888", "2003::1",
	} {
		require.True(t, Public(netip.MustParseAddr(text)), text)
	}
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.255.0.1", "100.64.0.1", "100.127.255.255", "127.0.0.1", "127.8.8.8", "169.254.169.254",
		"172.16.0.1", "172.31.255.255", "192.0.0.8", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1",
		"198.19.255.255", "198.51.100.9", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255",
		"::", "::1", "::7f00:1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:169.254.169.254",
		"::ffff:0:127.0.0.1", "64:ff9b::a9fe:a9fe", "64:ff9b::8.8.8.8", "64:ff9b:1::10.0.0.1", "100::1",
		"2001::1", "2001:0:4136:e378::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::",
		"2002:a9fe:a9fe::1", "3fff::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fdaa::3", "fe80::1", "fe80::1%lo",
		"fec0::1", "ff02::1", "2606:4700::1111%eth0", "4000::1", "::ffff:8.8.8.8%lo",
	} {
		require.False(t, Public(netip.MustParseAddr(text)), text)
	}
	require.False(t, Public(netip.Addr{}))
}

// FuzzPublic compares the judgement with a second one made of the standard
// library's own words, and holds it to being the same in every clothing.
func FuzzPublic(f *testing.F) {
	for _, text := range []string{"127.0.0.1", "8.8.8.8", "::1", "fe80::1%lo", "::ffff:10.0.0.1", "64:ff9b::1.2.3.4", "2002:7f00:1::", "fdaa::3", "bogus", "[::1]:80"} {
		f.Add(text, []byte(text))
	}
	f.Fuzz(func(t *testing.T, text string, raw []byte) {
		_ = control("tcp4", text, nil)
		_ = control("tcp6", "["+text+"]:443", nil)
		for _, addr := range addresses(text, raw) {
			judged := Public(addr)
			plain := addr.Unmap()
			if judged {
				require.True(t, plain.IsGlobalUnicast() && !plain.IsPrivate() && !plain.IsLoopback() && !plain.IsLinkLocalUnicast(), addr)
				require.Empty(t, addr.Zone())
			}
			if plain.Is4() {
				mapped := netip.AddrFrom16(plain.As16())
				require.Equal(t, Public(plain), Public(mapped), addr)
				require.False(t, Public(nat64(plain)), "translated %s", addr)
			}
			dialled := control("tcp6", netip.AddrPortFrom(addr, 443).String(), nil) == nil
			require.Equal(t, judged, dialled, addr)
		}
	})
}

func addresses(text string, raw []byte) []netip.Addr {
	var list []netip.Addr
	if addr, err := netip.ParseAddr(text); err == nil {
		list = append(list, addr)
	}
	if addr, ok := netip.AddrFromSlice(raw); ok {
		list = append(list, addr)
	}
	return list
}

func nat64(addr netip.Addr) netip.Addr {
	bytes := netip.MustParseAddr("64:ff9b::").As16()
	four := addr.As4()
	copy(bytes[12:], four[:])
	return netip.AddrFrom16(bytes)
}
