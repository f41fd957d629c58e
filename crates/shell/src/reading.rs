//! The files that settings are in, and those that they name.

use std::path::{Path, PathBuf};

use auth::hba::Hba;
use auth::ident::IdentMaps;
use auth::userlist::Userlist;
use hub::Inputs;
use settings::{AuthType, Settings, SslMode};

use crate::log::{Facility, LogOptions, Syslog};
use crate::shared::Shared;
use crate::tls::{ClientTls, ServerTls, TlsOptions};

/// Where settings come from.
#[derive(Clone, Debug)]
pub enum Source {
    /// An ini file.
    File(String),
    /// A URL of one database; no file at all.
    Url(String),
}

/// The source, and what was said on the command line.
#[derive(Clone, Debug)]
pub struct Files {
    /// Where settings come from.
    pub source: Source,
    /// `-q`.
    pub quiet: bool,
    /// How often `-v` was said.
    pub verbose: u32,
    /// `-u`.
    pub user: Option<String>,
}

impl Files {
    /// Whether nothing goes to stderr.
    pub fn is_quiet(&self) -> bool {
        self.quiet
    }

    /// Reads the settings alone, with what is to be warned of.
    ///
    /// # Errors
    /// Everything that is wrong, a line each.
    pub fn settings(&self) -> Result<(Settings, Vec<String>), Vec<String>> {
        let texts = |problems: Vec<settings::Problem>| -> Vec<String> {
            problems.iter().map(ToString::to_string).collect()
        };
        let (mut settings, warnings) = match &self.source {
            Source::Url(url) => (Settings::from_url(url).map_err(texts)?, Vec::new()),
            Source::File(path) => {
                let outcome = settings::read(path, &|path: &str| {
                    std::fs::read(path).map_err(|error| error.to_string())
                });
                let warnings = outcome.warnings.iter().map(ToString::to_string).collect();
                (outcome.settings.map_err(texts)?, warnings)
            }
        };
        if let Some(user) = &self.user {
            settings.general.user = Some(user.clone());
        }
        if self.verbose > 0 {
            settings.general.verbose = self.verbose;
        }
        Ok((settings, warnings))
    }

    /// Reads the settings and every file that they name.
    ///
    /// # Errors
    /// Everything that is wrong, a line each.
    pub fn read(&self) -> Result<Inputs, Vec<String>> {
        let (inputs, warnings) = self.read_all()?;
        warnings.iter().for_each(|warning| tracing::warn!("{warning}"));
        Ok(inputs)
    }

    /// As [`Files::read`], before there is a log: the second part is what is to be warned of.
    ///
    /// # Errors
    /// Everything that is wrong, a line each.
    pub fn read_all(&self) -> Result<(Inputs, Vec<String>), Vec<String>> {
        let (settings, mut warnings) = self.settings()?;
        let (inputs, complaints) = read_named(settings)?;
        warnings.extend(complaints);
        Ok((inputs, warnings))
    }

    /// Everything that is wrong or worth a warning, for `howdah check`. The first list is of what would keep it
    /// from starting.
    pub fn check(&self) -> (Vec<String>, Vec<String>) {
        let (settings, mut warnings) = match self.settings() {
            Ok(read) => read,
            Err(problems) => return (problems, Vec::new()),
        };
        let mut problems = Vec::new();
        if let Err(fault) = load_tls_files(&settings) {
            problems.push(fault);
        }
        match read_named(settings) {
            Ok((_, complaints)) => warnings.extend(complaints),
            Err(more) => problems.extend(more),
        }
        (problems, warnings)
    }
}

/// Reads auth_file, HBA and ident files. The second part is of lines in them that are skipped.
fn read_named(settings: Settings) -> Result<(Inputs, Vec<String>), Vec<String>> {
    let general = &settings.general;
    let mut complaints = Vec::new();
    let mut problems = Vec::new();
    let mut userlist = Userlist::default();
    if let Some(path) = general.auth_file.as_ref().filter(|path| !path.is_empty()) {
        match std::fs::read(path) {
            Ok(bytes) => {
                let (list, faults) = Userlist::parse(&bytes);
                userlist = list;
                complaints.extend(told(path, &faults));
            }
            Err(error) => problems.push(format!("auth_file: could not open \"{path}\": {error}")),
        }
    }
    let (mut hba, mut idents) = (Hba::default(), IdentMaps::default());
    if general.auth_type == AuthType::Hba {
        match std::fs::read(&general.auth_hba_file) {
            Ok(bytes) => {
                let dir = Path::new(&general.auth_hba_file).parent().unwrap_or(Path::new("")).to_owned();
                let (rules, faults) = Hba::parse(&bytes, &mut |path| std::fs::read(dir.join(path)).ok());
                hba = rules;
                complaints.extend(told(&general.auth_hba_file, &faults));
            }
            Err(error) => {
                problems
                    .push(format!("auth_hba_file: could not open \"{}\": {error}", general.auth_hba_file));
            }
        }
        if let Some(path) = general.auth_ident_file.as_ref().filter(|path| !path.is_empty()) {
            match std::fs::read(path) {
                Ok(bytes) => {
                    let (maps, faults) = IdentMaps::parse(&bytes);
                    idents = maps;
                    complaints.extend(told(path, &faults));
                }
                Err(error) => problems.push(format!("auth_ident_file: could not open \"{path}\": {error}")),
            }
        }
    }
    if problems.is_empty() {
        Ok((Inputs { settings, userlist, hba, idents }, complaints))
    } else {
        Err(problems)
    }
}

fn told<F: std::fmt::Display>(path: &str, faults: &auth::Problems<F>) -> Vec<String> {
    let mut lines: Vec<String> = faults
        .listed
        .iter()
        .map(|fault| format!("{path}:{}:{}: {}", fault.line, fault.column, fault.fault))
        .collect();
    if faults.more > 0 {
        lines.push(format!("{path}: and {} more", faults.more));
    }
    lines
}

/// Loads the TLS files of these settings, and puts them in force if they are sound.
///
/// # Errors
/// What is wrong, and in which file.
pub fn load_tls(shared: &Shared, settings: &Settings) -> Result<(), Vec<String>> {
    let (client, server) = load_tls_files(settings).map_err(|fault| vec![fault])?;
    shared.client_tls.replace(client);
    shared.server_tls.replace(server);
    Ok(())
}

/// Loads the TLS files of these settings.
///
/// # Errors
/// What is wrong, and in which file.
pub fn load_tls_files(settings: &Settings) -> Result<(ClientTls, ServerTls), String> {
    let general = &settings.general;
    let path = |text: &str| (!text.is_empty()).then(|| PathBuf::from(text));
    let suites = |text: &Option<String>| text.clone().unwrap_or_default();
    let client = TlsOptions {
        mode: general.client_tls_sslmode,
        key_file: path(&general.client_tls_key_file),
        cert_file: path(&general.client_tls_cert_file),
        ca_file: path(&general.client_tls_ca_file),
        v1_2: general.client_tls_protocols.v1_2,
        v1_3: general.client_tls_protocols.v1_3,
        ciphers: general.client_tls_ciphers.clone(),
        tls13_ciphers: suites(&general.client_tls13_ciphers),
    };
    let server = TlsOptions {
        mode: general.server_tls_sslmode,
        key_file: path(&general.server_tls_key_file),
        cert_file: path(&general.server_tls_cert_file),
        ca_file: path(&general.server_tls_ca_file),
        v1_2: general.server_tls_protocols.v1_2,
        v1_3: general.server_tls_protocols.v1_3,
        ciphers: general.server_tls_ciphers.clone(),
        tls13_ciphers: suites(&general.server_tls13_ciphers),
    };
    let client = if client.mode == SslMode::Disable {
        ClientTls::DISABLED
    } else {
        ClientTls::load(&client).map_err(|fault| format!("client_tls: {fault}"))?
    };
    let server = if server.mode == SslMode::Disable {
        ServerTls::DISABLED
    } else {
        ServerTls::load(&server).map_err(|fault| format!("server_tls: {fault}"))?
    };
    Ok((client, server))
}

/// How the settings want the log.
pub fn log_options(settings: &Settings, quiet: bool) -> LogOptions {
    let general = &settings.general;
    LogOptions {
        stderr: !quiet,
        verbose: u8::try_from(general.verbose).unwrap_or(u8::MAX),
        file: (!general.logfile.is_empty()).then(|| PathBuf::from(&general.logfile)),
        syslog: general.syslog.then(|| Syslog {
            ident: general.syslog_ident.clone(),
            facility: Facility::from_name(&general.syslog_facility).unwrap_or(Facility::DAEMON),
        }),
    }
}
