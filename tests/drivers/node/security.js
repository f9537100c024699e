// SPDX-License-Identifier: Apache-2.0
// Options of a client: who logs in, and whose word is taken for the servers.
'use strict';

const cassandra = require('cassandra-driver');
const fs = require('node:fs');

const { TETRAD_TEST_USER: user, TETRAD_TEST_PASSWORD: password, TETRAD_TEST_TLS_CA: authority } = process.env;

module.exports = {
  ...(user && { authProvider: new cassandra.auth.PlainTextAuthProvider(user, password) }),
  ...(authority && { sslOptions: { ca: [fs.readFileSync(authority)], rejectUnauthorized: true } }),
};
