package web

import (
	"slices"
	"strings"
	"time"

	"tollgate/web/ui"
)

// zones are those a person can choose from: the larger places, west to east.
var zones = []string{
	"Pacific/Honolulu", "America/Anchorage", "America/Los_Angeles", "America/Denver", "America/Phoenix", "America/Chicago",
	"America/Mexico_City", "America/New_York", "America/Toronto", "America/Bogota", "America/Lima", "America/Caracas",
	"America/Halifax", "America/Santiago", "America/Argentina/Buenos_Aires", "America/Sao_Paulo", "Atlantic/Azores",
	"UTC", "Europe/London", "Europe/Dublin", "Europe/Lisbon", "Africa/Casablanca", "Africa/Lagos",
	"Europe/Amsterdam", "Europe/Berlin", "Europe/Brussels", "Europe/Copenhagen", "Europe/Madrid", "Europe/Oslo", "Europe/Paris",
	"Europe/Prague", "Europe/Rome", "Europe/Stockholm", "Europe/Vienna", "Europe/Warsaw", "Europe/Zurich",
	"Africa/Cairo", "Africa/Johannesburg", "Europe/Athens", "Europe/Bucharest", "Europe/Helsinki", "Europe/Kyiv", "Asia/Jerusalem",
	"Africa/Nairobi", "Asia/Riyadh", "Europe/Istanbul", "Asia/Tehran", "Asia/Dubai", "Asia/Karachi", "Asia/Kolkata", "Asia/Kathmandu",
	"Asia/Dhaka", "Asia/Bangkok", "Asia/Jakarta", "Asia/Ho_Chi_Minh", "Asia/Hong_Kong", "Asia/Manila", "Asia/Shanghai", "Asia/Singapore",
	"Asia/Taipei", "Australia/Perth", "Asia/Seoul", "Asia/Tokyo", "Australia/Adelaide", "Australia/Brisbane", "Australia/Sydney",
	"Pacific/Auckland",
}

// zoneOptions offers the zones with their distance from UTC at a time, and the chosen
// one even if it is another.
func zoneOptions(chosen string, now time.Time) []ui.Option {
	names := zones
	if chosen != "" && !slices.Contains(zones, chosen) {
		names = append([]string{chosen}, zones...)
	}
	var options []ui.Option
	for _, name := range names {
		label := strings.ReplaceAll(name, "_", " ")
		if zone, err := time.LoadLocation(name); err == nil && name != "UTC" {
			label += " (UTC" + now.In(zone).Format("-07:00") + ")"
		}
		options = append(options, ui.Option{Value: name, Label: label})
	}
	return options
}

// homeZones guess where a browser is from its first language. It is only what the form
// starts with.
var homeZones = map[string]string{
	"en-us": "America/New_York", "en-ca": "America/Toronto", "en-gb": "Europe/London", "en-ie": "Europe/Dublin", "en-au": "Australia/Sydney",
	"en-nz": "Pacific/Auckland", "en-in": "Asia/Kolkata", "en-sg": "Asia/Singapore", "en-za": "Africa/Johannesburg",
	"de": "Europe/Berlin", "de-at": "Europe/Vienna", "de-ch": "Europe/Zurich", "fr": "Europe/Paris", "fr-be": "Europe/Brussels",
	"es": "Europe/Madrid", "es-mx": "America/Mexico_City", "pt": "Europe/Lisbon", "pt-br": "America/Sao_Paulo", "it": "Europe/Rome",
	"nl": "Europe/Amsterdam", "pl": "Europe/Warsaw", "sv": "Europe/Stockholm", "da": "Europe/Copenhagen", "nb": "Europe/Oslo",
	"fi": "Europe/Helsinki", "cs": "Europe/Prague", "uk": "Europe/Kyiv", "tr": "Europe/Istanbul", "ja": "Asia/Tokyo", "ko": "Asia/Seoul",
	"zh": "Asia/Shanghai", "zh-tw": "Asia/Taipei", "vi": "Asia/Ho_Chi_Minh", "th": "Asia/Bangkok", "he": "Asia/Jerusalem",
}

func guessZone(acceptLanguage string) string {
	first, _, _ := strings.Cut(acceptLanguage, ",")
	first, _, _ = strings.Cut(strings.ToLower(strings.TrimSpace(first)), ";")
	language, _, _ := strings.Cut(first, "-")
	for _, key := range []string{first, language} {
		if zone, ok := homeZones[key]; ok {
			return zone
		}
	}
	return "UTC"
}
