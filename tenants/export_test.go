package tenants

// CheckRole and NetworkOf are opened to the tests in package tenants_test, which the
// test database forces out of this one.
var (
	CheckRole = checkRole
	NetworkOf = networkOf
)
