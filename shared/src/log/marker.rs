//! The markers: fixed strings that start the records the parser reads.

use super::{
    arguments, checkpoint, failure, maxtext, megatron_bridge, nccl_calls, nccl_lines, nemo1, nemo2, paxml,
    stated, torchtitan,
};

/// The kind of record that a marker starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Marker {
    Nemo1,
    Nemo2,
    Iteration,
    Utilisation,
    Memory,
    Torchtitan,
    TorchtitanBatch,
    TorchtitanSetup,
    Maxtext,
    Paxml,
    Arguments,
    Argument,
    EndOfArguments,
    PaddedVocabulary,
    Scenario,
    Checkpoint,
    Failure,
    Ended,
    Profiled,
    Traced,
    Nccl,
}

/// Returns every marker with its kind.
pub(super) fn all() -> Vec<(&'static [u8], Marker)> {
    let mut markers = vec![
        (nemo1::MARKER, Marker::Nemo1),
        (nemo2::MARKER, Marker::Nemo2),
        (megatron_bridge::ITERATION, Marker::Iteration),
        (megatron_bridge::UTILISATION, Marker::Utilisation),
        (megatron_bridge::MEMORY, Marker::Memory),
        (torchtitan::MARKER, Marker::Torchtitan),
        (torchtitan::BATCH, Marker::TorchtitanBatch),
        (maxtext::MARKER, Marker::Maxtext),
        (paxml::MARKER, Marker::Paxml),
        (arguments::OPENING, Marker::Arguments),
        (arguments::LEADER, Marker::Argument),
        (arguments::CLOSING, Marker::EndOfArguments),
        (arguments::PADDED_VOCABULARY, Marker::PaddedVocabulary),
        (stated::STATED_SCENARIO.as_bytes(), Marker::Scenario),
        (b"`Trainer.fit` stopped: ", Marker::Ended),
        (b"[after training is done]", Marker::Ended),
        (b"Training completed", Marker::Ended),
        (b"Capture range started in the application", Marker::Profiled),
        (b"====== Start nsys profiling ======", Marker::Profiled),
        (nccl_calls::MARKER, Marker::Traced),
    ];
    markers.extend(torchtitan::SETUP.iter().map(|text| (*text, Marker::TorchtitanSetup)));
    markers.extend(checkpoint::MARKERS.iter().map(|text| (*text, Marker::Checkpoint)));
    markers.extend(nccl_lines::MARKERS.iter().map(|text| (*text, Marker::Nccl)));
    markers.extend(failure::SIGNATURES.iter().map(|(text, _)| (*text, Marker::Failure)));
    markers
}
