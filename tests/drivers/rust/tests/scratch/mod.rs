// SPDX-License-Identifier: Apache-2.0
//! What the tests of the Rust driver share: sessions, over TLS and with a password where the servers ask for them, and a
//! keyspace that goes at the end.
#![allow(dead_code)]

use std::env;
use std::time::Duration;

use openssl::ssl::{SslConnector, SslConnectorBuilder, SslMethod};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::Session;
use scylla::client::session_builder::SessionBuilder;
use scylla::client::Compression;
use scylla::statement::Consistency;
use uuid::Uuid;

pub fn variable(name: &str, fallback: &str) -> String {
    env::var(name)
        .ok()
        .filter(|value| !value.is_empty())
        .unwrap_or_else(|| fallback.to_string())
}

pub fn port() -> String {
    variable("TETRAD_TEST_PORT", "9042")
}

pub fn hosts() -> Vec<String> {
    variable("TETRAD_TEST_HOSTS", "127.0.0.1")
        .split(',')
        .map(str::to_string)
        .collect()
}

/// Who logs in, with which password; none where the servers ask for none.
pub fn login() -> Option<(String, String)> {
    let user = variable("TETRAD_TEST_USER", "");
    (!user.is_empty()).then(|| (user, variable("TETRAD_TEST_PASSWORD", "")))
}

/// What trusts the authority of the servers' certificates and checks their names; none where the servers speak no TLS.
pub fn tls() -> Option<SslConnectorBuilder> {
    let authority = variable("TETRAD_TEST_TLS_CA", "");
    (!authority.is_empty()).then(|| {
        let mut builder = SslConnector::builder(SslMethod::tls_client()).unwrap();
        builder.set_ca_file(authority).expect("an authority");
        builder
    })
}

/// A builder of sessions with these servers that logs in and speaks TLS as they ask.
pub fn builder(hosts: &[String]) -> SessionBuilder {
    let mut builder = SessionBuilder::new()
        .known_nodes(hosts.iter().map(|host| format!("{host}:{}", port())))
        .connection_timeout(Duration::from_secs(10))
        .tls_context(tls());
    if let Some((user, password)) = login() {
        builder = builder.user(user, password);
    }
    builder
}

pub async fn connect_to(hosts: &[String], compression: Option<Compression>) -> Session {
    let profile = ExecutionProfile::builder()
        .consistency(Consistency::Quorum)
        .request_timeout(Some(Duration::from_secs(20)))
        .build();
    builder(hosts)
        .default_execution_profile_handle(profile.into_handle())
        .compression(compression)
        .schema_agreement_interval(Duration::from_millis(50))
        .keepalive_interval(Duration::from_secs(1))
        .keepalive_timeout(Duration::from_secs(2))
        .build()
        .await
        .expect("a session")
}

/// A session in a keyspace of its own.
pub struct Scratch {
    pub session: Session,
    pub keyspace: String,
}

impl Scratch {
    pub async fn new() -> Scratch {
        Scratch::with(None).await
    }

    pub async fn with(compression: Option<Compression>) -> Scratch {
        let session = connect_to(&hosts(), compression).await;
        let keyspace = format!("drv_rust_{}", &Uuid::new_v4().simple().to_string()[..8]);
        let factor = hosts().len().min(4);
        let create = format!(
            "CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {factor}}}"
        );
        session
            .query_unpaged(create, ())
            .await
            .expect("CREATE KEYSPACE");
        session.use_keyspace(&keyspace, false).await.expect("USE");
        Scratch { session, keyspace }
    }

    pub async fn run(&self, statement: &str) {
        self.session
            .query_unpaged(statement, ())
            .await
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }

    pub async fn end(self) {
        self.run(&format!("DROP KEYSPACE {}", self.keyspace)).await;
    }
}
