// SPDX-License-Identifier: Apache-2.0

// Package jaeger names what go.mod has to fetch: the program whose storage tests are run.
package jaeger

import _ "github.com/jaegertracing/jaeger/plugin/storage/cassandra"
