// SPDX-License-Identifier: Apache-2.0

// Package temporal names what go.mod has to fetch: the server whose persistence tests are run.
package temporal

import _ "go.temporal.io/server/common/persistence/tests"
