/** Takes a picture with the camera and attaches it to the message. */

import { useEffect, useRef } from "preact/hooks";
import { attach } from "../actions/files.ts";
import { showError } from "../state/notices.ts";
import { t } from "../text/index.ts";
import { Drawer } from "./controls.tsx";

const QUALITY = 0.9;

export function Camera({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  const video = useRef<HTMLVideoElement>(null);
  useEffect(() => {
    if (!isOpen) return undefined;
    const opening = navigator.mediaDevices.getUserMedia({
      video: { facingMode: "environment" },
    });
    opening
      .then((stream) => {
        if (video.current) video.current.srcObject = stream;
      })
      .catch((error) => {
        onClose();
        showError("conversation", new Error(t().cameraError(error)));
      });
    return () => {
      opening.then((stream) => stream.getTracks().forEach((track) => track.stop())).catch(() => {});
    };
  }, [isOpen]);
  const take = async () => {
    const shown = video.current;
    if (!shown) return;
    const canvas = document.createElement("canvas");
    canvas.width = shown.videoWidth;
    canvas.height = shown.videoHeight;
    canvas.getContext("2d")?.drawImage(shown, 0, 0);
    const blob = await new Promise<Blob | null>((resolve) =>
      canvas.toBlob(resolve, "image/jpeg", QUALITY),
    );
    onClose();
    if (blob) attach([new File([blob], "camera.jpg", { type: "image/jpeg" })]);
  };
  return (
    <Drawer title={t().camera} isOpen={isOpen} onClose={onClose} wide>
      <video ref={video} class="camera" autoplay muted playsInline />
      <button type="button" class="main" onClick={() => void take()}>
        {t().takePicture}
      </button>
    </Drawer>
  );
}
