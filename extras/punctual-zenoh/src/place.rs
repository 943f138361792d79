//! The place of the node in the network, and the certificates that secure its connections.

use std::fs;

use zenoh::{Config, Session, Wait};

use crate::ZenohError;

/// The endpoint without options.
const DEFAULT_ENDPOINT: &str = "tcp/127.0.0.1:7447";
/// The time limit for connecting to a peer at the start.
const CONNECT_MS: u32 = 5000;
/// The maximum length of a received message, unless a file sets another. Zenoh's own bound is a
/// gigabyte, which a peer could make it allocate.
const MAX_BYTES: u32 = 1 << 20;

/// The place of the node in the network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
    Listen(String, Certificates),
    Connect(String, Certificates),
    Configured(String),
}

/// Files in PEM for endpoints with TLS.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Certificates {
    /// The certificate of the authority that has signed those of the peers.
    authority: Option<String>,
    /// The certificate of this node and its private key.
    own: Option<(String, String)>,
}

impl Place {
    /// Reads the operands: a place, and then the files.
    pub(crate) fn new(operands: &[&str], is_ros: bool) -> Option<Self> {
        let (place, files) = match operands {
            ["--config", file] => return Some(Self::Configured((*file).to_owned())),
            [place @ ("--listen" | "--connect"), endpoint, files @ ..] => ((*place, *endpoint), files),
            // As rmw_zenoh_cpp does.
            files if is_ros => (("--connect", DEFAULT_ENDPOINT), files),
            files => (("--listen", DEFAULT_ENDPOINT), files),
        };
        let (mut authority, mut certificate, mut key) = (None, None, None);
        let mut files = files.chunks_exact(2);
        for pair in files.by_ref() {
            let of = match pair[0] {
                "--tls-ca" => &mut authority,
                "--tls-cert" => &mut certificate,
                "--tls-key" => &mut key,
                _ => return None,
            };
            if of.replace(pair[1].to_owned()).is_some() {
                return None;
            }
        }
        let own = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((certificate, key)),
            (None, None) => None,
            _ => return None,
        };
        let (certificates, endpoint) = (Certificates { authority, own }, place.1.to_owned());
        if !files.remainder().is_empty() {
            return None;
        }
        Some(match place.0 {
            "--listen" => Self::Listen(endpoint, certificates),
            _ => Self::Connect(endpoint, certificates),
        })
    }

    /// Joins the network.
    pub(crate) fn session(&self) -> Result<Session, ZenohError> {
        let (what, advice) = match self {
            Self::Listen(endpoint, _) if is_tls(endpoint) => (
                format!("cannot listen at {endpoint:?}"),
                "pass --tls-cert and --tls-key in PEM, and a port that is not in use",
            ),
            Self::Listen(endpoint, _) => (
                format!("cannot listen at {endpoint:?}"),
                "an endpoint is tcp/ADDRESS:PORT or tls/ADDRESS:PORT, with a port that is not in use",
            ),
            Self::Connect(endpoint, _) if is_tls(endpoint) => (
                format!("no connection to {endpoint:?}"),
                "a router or a peer must listen there, with a certificate for this host name that the \
                 authority of --tls-ca has signed; if it requires one of this node, pass --tls-cert and \
                 --tls-key",
            ),
            Self::Connect(endpoint, _) => (
                format!("no connection to {endpoint:?}"),
                "an endpoint is tcp/ADDRESS:PORT or tls/HOST:PORT, where a router or a peer must already \
                 listen",
            ),
            Self::Configured(file) => {
                (format!("a node configured by {file}"), "see Zenoh's DEFAULT_CONFIG.json5 for the settings")
            }
        };
        let config = match self {
            Self::Listen(endpoint, files) => {
                files.check(endpoint)?;
                peer("listen", endpoint, files)
            }
            Self::Connect(endpoint, files) => {
                files.check(endpoint)?;
                peer("connect", endpoint, files)
            }
            Self::Configured(file) => Config::from_file(file),
        };
        let session = config.and_then(|config| zenoh::open(config).wait());
        session.map_err(|error| ZenohError::new(&what, &error, advice))
    }
}

fn is_tls(endpoint: &str) -> bool {
    endpoint.starts_with("tls/")
}

impl Certificates {
    /// Checks that the files can be used, because Zenoh does not name the one that cannot.
    fn check(&self, endpoint: &str) -> Result<(), ZenohError> {
        let own = self.own.as_ref();
        let files = [
            ("--tls-ca", self.authority.as_ref(), "CERTIFICATE"),
            ("--tls-cert", own.map(|(certificate, _)| certificate), "CERTIFICATE"),
            ("--tls-key", own.map(|(_, key)| key), "PRIVATE KEY"),
        ];
        for (option, file, kind) in files {
            let Some(file) = file else { continue };
            let what = format!("{option} {file}");
            if !is_tls(endpoint) {
                let reason = format!("{endpoint:?} has no encryption");
                return Err(ZenohError::new(&what, &reason, "use the endpoint tls/HOST:PORT"));
            }
            let advice = "pass a file in PEM, readable by this user";
            let text = fs::read_to_string(file).map_err(|error| ZenohError::new(&what, &error, advice))?;
            let is_of_kind = |line: &str| line.starts_with("-----BEGIN ") && line.contains(kind);
            if !text.lines().any(is_of_kind) {
                return Err(ZenohError::new(
                    &what,
                    &format!("it contains no {}", kind.to_lowercase()),
                    advice,
                ));
            }
        }
        Ok(())
    }

    /// Returns the settings for a node that listens or connects (`side`). Each side that knows an
    /// authority requires a certificate of the other one.
    fn settings(&self, side: &str) -> Vec<(String, String)> {
        let mut settings = vec![];
        if let Some(authority) = &self.authority {
            settings.push(("root_ca_certificate".to_owned(), format!("{authority:?}")));
        }
        if let Some((certificate, key)) = &self.own {
            settings.push((format!("{side}_certificate"), format!("{certificate:?}")));
            settings.push((format!("{side}_private_key"), format!("{key:?}")));
        }
        let is_mutual = self.authority.is_some() && self.own.is_some();
        settings.push(("enable_mtls".to_owned(), is_mutual.to_string()));
        settings
    }
}

/// Returns the configuration of a peer without discovery that listens or connects (`side`).
fn peer(side: &str, endpoint: &str, files: &Certificates) -> zenoh::Result<Config> {
    let mut config = Config::default();
    // For all characters of endpoints and paths, quoting in Rust is the same as in JSON.
    let endpoints = format!("[{endpoint:?}]");
    for (key, value) in [
        ("mode", "\"peer\""),
        ("scouting/multicast/enabled", "false"),
        // Listens only where requested.
        ("listen/endpoints", "[]"),
        ("connect/timeout_ms", &CONNECT_MS.to_string()),
        ("connect/exit_on_failure", "true"),
        ("transport/link/rx/max_message_size", &MAX_BYTES.to_string()),
        (&format!("{side}/endpoints"), &endpoints),
    ] {
        config.insert_json5(key, value)?;
    }
    if is_tls(endpoint) {
        for (key, value) in files.settings(side) {
            config.insert_json5(&format!("transport/link/tls/{key}"), &value)?;
        }
    }
    Ok(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain(endpoint: &str) -> (String, Certificates) {
        (endpoint.to_owned(), Certificates::default())
    }

    #[test]
    fn accepts_one_place() {
        let listen = |endpoint| {
            let (endpoint, files) = plain(endpoint);
            Some(Place::Listen(endpoint, files))
        };
        let connect = |endpoint| {
            let (endpoint, files) = plain(endpoint);
            Some(Place::Connect(endpoint, files))
        };
        assert_eq!(Place::new(&[], false), listen(DEFAULT_ENDPOINT));
        assert_eq!(Place::new(&[], true), connect(DEFAULT_ENDPOINT));
        assert_eq!(Place::new(&["--listen", "tcp/[::]:1"], true), listen("tcp/[::]:1"));
        assert_eq!(Place::new(&["--connect", "tcp/10.0.0.2:1"], false), connect("tcp/10.0.0.2:1"));
        let file = Some(Place::Configured("node.json5".into()));
        assert_eq!(Place::new(&["--config", "node.json5"], false), file);
        for wrong in [&["tcp/[::]:1"][..], &["--listen"], &["--listen", "a", "--connect", "b"]] {
            assert_eq!(Place::new(wrong, false), None, "{wrong:?}");
        }
    }

    #[test]
    fn certificate_and_key_belong_together() {
        let certificates = |words: &str| {
            let words: Vec<&str> = words.split(' ').collect();
            match Place::new(&words, false)? {
                Place::Listen(_, files) | Place::Connect(_, files) => Some(files),
                Place::Configured(_) => None,
            }
        };
        let authority = Some("ca".to_owned());
        let own = Some(("cert".to_owned(), "key".to_owned()));
        let both = "--listen tls/[::]:1 --tls-key key --tls-cert cert";
        assert_eq!(certificates(both), Some(Certificates { authority: None, own: own.clone() }));
        let all = certificates("--connect tls/robot:1 --tls-ca ca --tls-cert cert --tls-key key").unwrap();
        assert_eq!(all, Certificates { authority: authority.clone(), own });
        assert!(all.settings("connect").contains(&("enable_mtls".into(), "true".into())));
        let only = certificates("--connect tls/robot:1 --tls-ca ca").unwrap();
        assert_eq!(only, Certificates { authority, own: None });
        assert!(only.settings("connect").contains(&("enable_mtls".into(), "false".into())));
        for wrong in [
            "--listen tls/[::]:1 --tls-cert cert",
            "--listen tls/[::]:1 --tls-key key",
            "--listen tls/[::]:1 --tls-ca",
            "--listen tls/[::]:1 --tls-ca a --tls-ca b",
            "--config node.json5 --tls-ca ca",
        ] {
            assert_eq!(certificates(wrong), None, "{wrong}");
        }
    }
}
