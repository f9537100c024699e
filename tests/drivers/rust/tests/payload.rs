// SPDX-License-Identifier: Apache-2.0
//! Custom payloads: the Rust driver has no call for them, so its protocol crate builds the frames and reads the answers.

use std::borrow::Cow;
use std::collections::HashMap;
use std::pin::Pin;

use scylla_cql::frame::request::query::{Query, QueryParameters};
use scylla_cql::frame::request::{
    AuthResponse, Prepare, RequestOpcode, SerializableRequest, Startup,
};
use scylla_cql::frame::response::{Response, ResponseOpcode};
use scylla_cql::frame::{
    self, flag, protocol_features::ProtocolFeatures, types, Compression, SerializedRequest,
};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_openssl::SslStream;

mod scratch;

const HEADER: usize = 9;

trait Stream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<T: AsyncRead + AsyncWrite + Unpin + Send> Stream for T {}

/// A connection to the first server, over TLS where the servers speak it.
async fn open_stream() -> Box<dyn Stream> {
    let host = scratch::hosts()[0].clone();
    let socket = TcpStream::connect(format!("{host}:{}", scratch::port()))
        .await
        .unwrap();
    let Some(tls) = scratch::tls() else {
        return Box::new(socket);
    };
    let client = tls.build().configure().unwrap().into_ssl(&host).unwrap();
    let mut stream = SslStream::new(client, socket).unwrap();
    Pin::new(&mut stream).connect().await.unwrap();
    Box::new(stream)
}

struct Connection {
    socket: Box<dyn Stream>,
    compression: Option<Compression>,
}

impl Connection {
    async fn open(compression: Option<Compression>) -> Connection {
        let mut connection = Connection {
            socket: open_stream().await,
            compression,
        };
        let mut options = HashMap::from([(Cow::from("CQL_VERSION"), Cow::from("3.0.0"))]);
        if let Some(compression) = compression {
            options.insert("COMPRESSION".into(), compression.as_str().into());
        }
        let ready = connection.ask(&Startup { options }, &HashMap::new()).await;
        let Some((user, password)) = scratch::login() else {
            assert!(matches!(ready.0, Response::Ready));
            return connection;
        };
        assert!(matches!(ready.0, Response::Authenticate(_)));
        let response = Some(format!("\0{user}\0{password}").into_bytes());
        let entered = connection
            .ask(&AuthResponse { response }, &HashMap::new())
            .await;
        assert!(matches!(entered.0, Response::AuthSuccess(_)));
        connection
    }

    /// The answer to a request that carries this payload, and the payload of the answer.
    async fn ask<R: SerializableRequest>(
        &mut self,
        request: &R,
        payload: &HashMap<String, Vec<u8>>,
    ) -> (Response, Option<Vec<String>>) {
        let plain = SerializedRequest::make(request, None, false).unwrap();
        let mut body = Vec::new();
        if !payload.is_empty() {
            types::write_bytes_map(payload, &mut body).unwrap();
        }
        body.extend_from_slice(&plain.get_data()[HEADER..]);
        let mut sent = plain.get_data()[..HEADER].to_vec();
        if !payload.is_empty() {
            sent[1] |= flag::CUSTOM_PAYLOAD;
        }
        match self.compression {
            Some(compression) if R::OPCODE as u8 != RequestOpcode::Startup as u8 => {
                sent[1] |= flag::COMPRESSION;
                frame::compress_append(&body, compression, &mut sent).unwrap();
            }
            _ => sent.extend_from_slice(&body),
        }
        let length = (sent.len() - HEADER) as u32;
        sent[5..HEADER].copy_from_slice(&length.to_be_bytes());
        self.socket.write_all(&sent).await.unwrap();

        let (params, opcode, raw) = frame::read_response_frame(&mut self.socket).await.unwrap();
        assert_ne!(opcode, ResponseOpcode::Event);
        let parts =
            frame::parse_response_body_extensions(params.flags, self.compression, raw).unwrap();
        let features = ProtocolFeatures::default();
        let answer = Response::deserialize(&features, opcode, parts.body, None).unwrap();
        let keys = parts.custom_payload.map(|map| map.into_keys().collect());
        (answer, keys)
    }
}

fn payload() -> HashMap<String, Vec<u8>> {
    HashMap::from([
        ("a".to_string(), b"b".to_vec()),
        ("empty".to_string(), Vec::new()),
        ("binary".to_string(), (0..=255).collect()),
    ])
}

fn query(text: &str) -> Query<'_> {
    Query {
        contents: text.into(),
        parameters: QueryParameters::default(),
    }
}

fn rows_of(answer: Response) -> usize {
    use scylla_cql::frame::response::result::Result;
    match answer {
        Response::Result(Result::Rows((rows, _))) => {
            rows.deserialize_metadata().unwrap().rows_count()
        }
        _ => panic!("no rows"),
    }
}

#[tokio::test]
async fn a_custom_payload_is_taken_with_a_query_and_with_what_is_prepared() {
    for compression in [None, Some(Compression::Lz4), Some(Compression::Snappy)] {
        let mut connection = Connection::open(compression).await;
        let text = "SELECT key FROM system.local";
        let (with, keys) = connection.ask(&query(text), &payload()).await;
        assert_eq!(rows_of(with), 1);
        // Cassandra's answers carry none; keys of a server's own may come, never those that were sent.
        let keys = keys.unwrap_or_default();
        assert!(keys.iter().all(|key| !payload().contains_key(key)));
        let (without, _) = connection.ask(&query(text), &HashMap::new()).await;
        assert_eq!(rows_of(without), 1);
        let (prepared, _) = connection.ask(&Prepare { query: text }, &payload()).await;
        assert!(matches!(
            prepared,
            Response::Result(scylla_cql::frame::response::result::Result::Prepared(_))
        ));
    }
}

#[tokio::test]
async fn an_error_comes_back_where_a_payload_was_sent() {
    let mut connection = Connection::open(None).await;
    let (answer, _) = connection.ask(&query("SELECT nothing"), &payload()).await;
    assert!(matches!(answer, Response::Error(_)));
    let (after, _) = connection
        .ask(&query("SELECT key FROM system.local"), &payload())
        .await;
    assert_eq!(rows_of(after), 1);
}
