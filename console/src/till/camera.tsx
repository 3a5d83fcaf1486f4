import { Alert, Text } from '@mantine/core';
import { useEffect, useRef, useState } from 'react';
import { Dialog } from '../ui/dialog.tsx';
import { useTillTexts } from './texts.ts';

const LOOK_MS = 150;

/** Reads the QR code of a card by the camera, whose pictures stay in the browser. */
export function Camera({ onRead, onClose }: { onRead(text: string): void; onClose(): void }) {
  const texts = useTillTexts();
  const video = useRef<HTMLVideoElement>(null);
  const [fault, setFault] = useState<string>();
  const found = useRef(onRead);
  useEffect(() => {
    found.current = onRead;
  }, [onRead]);
  useEffect(() => {
    const end = new AbortController();
    watch(video, end.signal)
      .then((text) => end.signal.aborted || text === undefined || found.current(text))
      .catch((error: Error) => {
        const isRefused = error.name === 'NotAllowedError' || error.name === 'SecurityError';
        setFault(isRefused ? texts.cameraRefused : texts.cameraMissing);
      });
    return () => end.abort();
  }, [texts]);
  return (
    <Dialog opened onClose={onClose} title={texts.camera}>
      {fault ? (
        <Alert color="red" variant="light" role="alert">
          {fault}
        </Alert>
      ) : (
        <>
          <Text size="sm" mb="sm">
            {texts.cameraLead}
          </Text>
          <video ref={video} className="camera" muted playsInline aria-label={texts.camera} />
        </>
      )}
    </Dialog>
  );
}

/** Looks through the camera until there is a QR code. @returns its text; undefined if it was ended before */
async function watch(
  video: { readonly current: HTMLVideoElement | null },
  end: AbortSignal,
): Promise<string | undefined> {
  const [{ BarcodeDetector }, stream] = await Promise.all([
    import('qr/decode.js'),
    navigator.mediaDevices.getUserMedia({ video: { facingMode: 'environment' } }),
  ]);
  const detector = new BarcodeDetector({ formats: ['qr_code'] });
  try {
    const screen = video.current;
    if (!screen) return undefined;
    screen.srcObject = stream;
    await screen.play();
    while (!end.aborted) {
      const [code] = await detector.detect(screen);
      if (code) return code.rawValue;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    return undefined;
  } finally {
    for (const track of stream.getTracks()) track.stop();
  }
}
